// What Python calls: launches are added, then run together. Kernels are numbered by the generated source.
#pragma once
struct Kernel {
    void (*body)(const CusimParams&, const CusimTensorMap*);
    int threads, shared;
};
extern const Kernel kernels[];

extern "C" {
static std::vector<emu::Launch> waiting;
void emu_add(int kernel, const CusimParams* p, const CusimTensorMap* maps, int grid) {
    const Kernel& k = kernels[kernel];
    waiting.push_back({[=] { k.body(*p, maps); }, grid, k.threads, k.shared});
}
const char* emu_run(int resident, unsigned seed, int late) {
    emu::draw.seed(seed);
    emu::late = late;
    static std::vector<emu::Launch> now;
    now.clear();
    now.swap(waiting);
    return emu::run(now, resident);
}
int emu_params_bytes() { return (int)sizeof(CusimParams); }
int emu_offset(int word) {
    const int offsets[] = {offsetof(CusimParams, sem_in), offsetof(CusimParams, arrivals), offsetof(CusimParams, stamps),
                           offsetof(CusimParams, m), offsetof(CusimParams, flags)};
    return offsets[word];
}
}
