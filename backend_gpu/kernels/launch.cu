// Small kernels around the products: the head of a run, the wait-kernel of cuSync, and one that keeps SMs busy.
#include "sync.cuh"

// The head node of a run, ordered before all its kernels: the run's number goes up, and with it every target. Nothing
// is reset, so a graph can be replayed, also after a run that was not checked.
extern "C" __global__ void cusim_next_epoch(u32* epoch) { add_release(epoch, 1); }

// Returns once `needed` blocks of a kernel have started in this run (`blocks`: all of them). One thread; placed in
// front of a consumer on its stream, it keeps the consumer's blocks out of the slots that the producer needs.
extern "C" __global__ void cusim_wait_started(const __grid_constant__ CusimParams p, u32 blocks, u32 needed) {
    const u32 target = base_of(load_relaxed(p.epoch), (int)blocks) + needed;
    Watch watch;
    for (;;) {
        const u32 value = load_acquire(p.started);
        if (reached(value, target)) return;
        bool late = false, stop = false;
        if (watch.look(p, p.spin_budget_ns, late, stop)) {
            if (late && !stop) give_up(p, CUSIM_FAULT_STARTED, 0, 0, value, target);
            if (late || stop) return;
        }
        sleep_ns(50);
    }
}

// Each block spins for `ns`: a queue to issue behind, or a machine to fill.
extern "C" __global__ void cusim_busy(u64 ns) {
    const u64 from = now_ns();
    while (now_ns() - from < ns) sleep_ns(100);
}
