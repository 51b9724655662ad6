// A GPU in one thread of a CPU: fibres for threads, blocks with shared memory, asynchronous work that arrives late and
// in any order. A fibre runs until it waits; which fibre is next, and when a copy lands, is drawn from a seed.
#pragma once
#include <ucontext.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace emu {

using Ready = std::function<bool()>;
struct Block;

struct Meeting { int here = 0, round = 0; };                                   // a barrier of threads
struct Barrier { int count = 0, pending = 0, bytes = 0; unsigned parity = 0; }; // an mbarrier
struct Warp { Meeting meeting; unsigned word[32]; unsigned a[32][4], b[32][2]; };
struct Copy { unsigned to; const void* from; bool inside; };                   // cp.async
struct Product { float* sums; int columns; uint64_t a, b; bool bf16; };        // wgmma
struct Bulk { unsigned to, bar; const void* map; int column, row; };           // bulk tensor copy

struct Fibre {
    int index = 0;
    Block* block = nullptr;
    Warp* warp = nullptr;
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    Ready ready;
    bool done = false;
    std::vector<std::vector<Copy>> copies{1};       // the last group is open
    std::vector<std::vector<Product>> products{1};
};

struct Launch {
    std::function<void()> body;
    int grid, threads, shared, next = 0;
};

struct Block {
    int index, live;
    Launch* launch;
    char* shared;
    int shared_bytes;
    std::vector<std::unique_ptr<Fibre>> fibres;
    std::vector<Warp> warps;
    std::map<int, Meeting> meetings;
    std::map<unsigned, Barrier> barriers;
    std::vector<Bulk> bulks;
};

inline std::mt19937 draw(1);
inline bool late = true; // asynchronous work lands as late as it may; else at once or at random
inline uint64_t clock_ns = 0;
inline Fibre* me = nullptr;
inline ucontext_t scheduler;
inline ucontext_t home;             // where a failed run goes back to
inline const char* volatile fault = nullptr;

[[noreturn]] inline void fail(const char* what) {
    fault = what;
    setcontext(&home);
    std::abort();
}
inline void pass(Ready ready = nullptr) {
    me->ready = std::move(ready);
    swapcontext(&me->context, &scheduler);
}
// A thread that falls behind now and then, for so long that others meet what it has not done yet.
inline void dawdle() {
    if (draw() % 16 != 0) return;
    for (unsigned turns = draw() % 60; turns > 0; turns--) pass();
}
inline void meet(Meeting& meeting, int count) {
    const int round = meeting.round;
    if (++meeting.here == count) {
        meeting.here = 0;
        meeting.round++;
    } else {
        pass([&meeting, round] { return meeting.round != round; });
    }
}
inline char* shared_at(unsigned at, unsigned bytes, Block* block = nullptr) {
    Block* b = block ? block : me->block;
    if ((int)(at + bytes) > b->shared_bytes) fail("outside shared memory");
    if (at % (bytes < 16 ? bytes : 16) != 0) fail("misaligned shared memory");
    return b->shared + at;
}
inline Barrier& barrier_at(unsigned bar, Block* block = nullptr) {
    auto& all = (block ? block : me->block)->barriers;
    const auto found = all.find(bar);
    if (found == all.end()) fail("a barrier that was never initialised");
    return found->second;
}
inline void complete(Barrier& b) {
    if (b.pending < 0) fail("more arrivals at a barrier than it counts");
    if (b.pending == 0 && b.bytes == 0) {
        b.parity ^= 1;
        b.pending = b.count;
    }
}
void land(Block* block, const Bulk& bulk); // emu_ptx.h

inline void enter(unsigned low, unsigned high) {
    Fibre* f = reinterpret_cast<Fibre*>((uint64_t)high << 32 | low);
    f->block->launch->body();
    f->done = true;
    f->block->live--;
    swapcontext(&f->context, &scheduler);
}
inline std::unique_ptr<Block> place(Launch& launch) {
    auto b = std::make_unique<Block>();
    b->index = launch.next++;
    b->live = launch.threads;
    b->launch = &launch;
    b->shared_bytes = launch.shared;
    b->shared = static_cast<char*>(std::aligned_alloc(1024, (launch.shared + 1023) / 1024 * 1024));
    std::memset(b->shared, 0x7f, launch.shared); // NaN, whatever the type
    b->warps.resize(launch.threads / 32);
    for (int i = 0; i < launch.threads; i++) {
        auto f = std::make_unique<Fibre>();
        f->index = i;
        f->block = b.get();
        f->warp = &b->warps[i / 32];
        const size_t size = 64 << 10;
        f->stack.reset(new char[size]);
        getcontext(&f->context);
        f->context.uc_stack.ss_sp = f->stack.get();
        f->context.uc_stack.ss_size = size;
        f->context.uc_link = nullptr;
        const uint64_t p = reinterpret_cast<uint64_t>(f.get());
        makecontext(&f->context, reinterpret_cast<void (*)()>(enter), 2, (unsigned)p, (unsigned)(p >> 32));
        b->fibres.push_back(std::move(f));
    }
    return b;
}
inline void land_some(Block* b) {
    while (!b->bulks.empty() && draw() % 4 != 0) {
        const size_t i = draw() % b->bulks.size();
        const Bulk bulk = b->bulks[i];
        b->bulks.erase(b->bulks.begin() + (long)i);
        land(b, bulk);
    }
}
// One turn of a block's fibres, from a random one on; true when any could run.
inline bool turn(Block* b) {
    bool ran = false;
    const size_t count = b->fibres.size(), start = draw() % count, stride = draw() % 2 ? 1 : count - 1;
    for (size_t i = 0, at = start; i < count; i++, at = (at + stride) % count) {
        Fibre* f = b->fibres[at].get();
        if (f->done || (f->ready && !f->ready())) continue;
        me = f;
        clock_ns++;
        ran = true;
        swapcontext(&scheduler, &f->context);
    }
    return ran;
}
// Runs launches side by side, `resident` blocks of each at a time. What went wrong, or null.
inline const char* run(std::vector<Launch>& launches, int resident) {
    auto& held = *new std::vector<std::vector<std::unique_ptr<Block>>>(launches.size()); // a failed run is abandoned
    fault = nullptr;
    getcontext(&home);
    if (fault) return fault;
    for (int idle = 0;;) {
        bool any = false, ran = false;
        for (size_t l = 0; l < launches.size(); l++) {
            auto& blocks = held[l];
            for (size_t i = 0; i < blocks.size();) {
                if (blocks[i]->live) { i++; continue; }
                if (!blocks[i]->bulks.empty()) fail("a block ended with copies in flight");
                std::free(blocks[i]->shared);
                blocks.erase(blocks.begin() + (long)i);
            }
            while ((int)blocks.size() < resident && launches[l].next < launches[l].grid) blocks.push_back(place(launches[l]));
            for (auto& b : blocks) {
                any = true;
                ran |= turn(b.get()) || !b->bulks.empty();
                land_some(b.get());
            }
        }
        if (!any) return nullptr;
        clock_ns += 10;
        idle = ran ? 0 : idle + 1;
        if (idle > 200000) fail("every thread waits: stuck");
    }
}

} // namespace emu
