// SPDX-License-Identifier: Apache-2.0
// A CUDA program that knows nothing of sonde: 100 kernels, two copies, a fill. "kill": ends by SIGKILL.
#include <cstdio>
#include <cstring>
#include <csignal>
#include <unistd.h>

__global__ void scale(float *x, int n, float by)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= by;
}

int main(int argc, char **argv)
{
    const int n = 1 << 16;
    static float host[n];
    float *device;
    if (cudaMalloc(&device, n * sizeof *device) != cudaSuccess)
        return 1;
    cudaMemset(device, 0, n * sizeof *device);
    cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
    for (int i = 0; i < 100; i++)
        scale<<<(n + 255) / 256, 256>>>(device, n, 1.5f);
    if (argc > 1 && strcmp(argv[1], "kill") == 0) {
        cudaDeviceSynchronize();
        sleep(2);
        raise(SIGKILL);
    }
    if (argc > 1 && strcmp(argv[1], "fork") == 0) {
        if (fork() == 0)
            _exit(0);
        sleep(1);
    }
    cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
    puts("done");
    return 0;
}
