// One compiled kernel: the glue of a program's kernel (written by backend_gpu/bind.py) and a shape, given as macros.
#include "gemm_wgmma.cuh"

using CusimShape = WgmmaShape<CUSIM_BM, CUSIM_BN, CUSIM_STAGES, CUSIM_GROUPS, CUSIM_BF16, CUSIM_EPILOGUE, CUSIM_PROLOGUE, CUSIM_PERSISTENT>;

extern "C" __global__ void __launch_bounds__(CusimShape::THREADS, CusimShape::BLOCKS)
    CUSIM_NAME(const __grid_constant__ CusimParams p, const __grid_constant__ CusimTensorMap a,
               const __grid_constant__ CusimTensorMap b, const __grid_constant__ CusimTensorMap a_second) {
    gemm_wgmma<CusimShape, CusimGlue>(p, &a, &b, &a_second);
}
