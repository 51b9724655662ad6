// How fine the global timer is: the values it takes, one after the other.
#include "ptx.cuh"

extern "C" __global__ void cusim_timer(u64* values, int count) {
    u64 last = now_ns();
    for (int i = 0; i < count; i++) {
        u64 now = last;
        while (now == last) now = now_ns();
        values[i] = now;
        last = now;
    }
}
