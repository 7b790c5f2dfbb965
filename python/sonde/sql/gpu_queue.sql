-- How much work waits in each stream of a GPU, at each launch and each start of work (HTA's queue length).
with changes as (
    select job, process, device, stream, launch_ns as time_ns, 1 as change
    from gpu_work
    where api in ('cudaLaunchKernel', 'cudaLaunchKernelExC', 'cuLaunchKernel', 'cudaMemcpyAsync', 'cudaMemsetAsync')
    union all
    select job, process, device, stream, start_ns as time_ns, -1 as change
    from gpu_work
    where api in ('cudaLaunchKernel', 'cudaLaunchKernelExC', 'cuLaunchKernel', 'cudaMemcpyAsync', 'cudaMemsetAsync')
),
lengths as (
    select
        job, process, device, stream,
        sum(change) over (
            partition by job, process, device, stream order by time_ns, change desc
            rows between unbounded preceding and current row
        ) as waiting
    from changes
)
select
    lengths.job, lengths.process, processes.rank, device, stream,
    count(*) as moments,
    avg(waiting) as mean,
    stddev_samp(waiting) as deviation,
    min(waiting) as least,
    median(waiting) as median,
    max(waiting) as most
from lengths
join processes on processes.job = lengths.job and processes.id = lengths.process
group by lengths.job, lengths.process, processes.rank, device, stream
order by lengths.job, processes.rank, lengths.process, device, stream
