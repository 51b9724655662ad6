// One compiled kernel: the glue of a program's kernel (written by backend_gpu/bind.py) and a shape, given as macros.
#include "gemm_mma.cuh"

using CusimShape = MmaShape<CUSIM_BM, CUSIM_BN, CUSIM_BK, CUSIM_STAGES, CUSIM_WM, CUSIM_WN, CUSIM_BF16, CUSIM_EPILOGUE, CUSIM_PROLOGUE, CUSIM_PERSISTENT>;

extern "C" __global__ void __launch_bounds__(CusimShape::THREADS, CusimShape::BLOCKS) CUSIM_NAME(const __grid_constant__ CusimParams p) {
    gemm_mma<CusimShape, CusimGlue>(p);
}
