-- Each launch: how long the call and the work took, and from the call's end to the begin of the work (HTA's launch statistics).
select
    gpu_work.job, gpu_work.process, processes.rank, correlation, name, api,
    launch_duration_ns as cpu_duration_ns,
    duration_ns as gpu_duration_ns,
    greatest(gpu_work.start_ns - launch_ns - launch_duration_ns, 0) as launch_delay_ns
from gpu_work
join processes on processes.job = gpu_work.job and processes.id = gpu_work.process
where api in ('cudaLaunchKernel', 'cudaLaunchKernelExC', 'cudaMemcpyAsync', 'cudaMemsetAsync')
order by launch_delay_ns desc, gpu_work.job, gpu_work.process, correlation
