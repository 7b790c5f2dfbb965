-- Kernels, copies and fills of each rank by name: how often and how long (HTA's kernel breakdown).
select
    gpu_work.job, gpu_work.process, processes.rank,
    case when kind <> 'kernel' then 'copy' when name like 'nccl%Kernel%' then 'communication' else 'compute' end as does,
    name,
    count(*) as runs,
    sum(duration_ns) as total_ns,
    max(duration_ns) as greatest_ns,
    min(duration_ns) as least_ns,
    avg(duration_ns) as mean_ns,
    coalesce(stddev_samp(duration_ns), 0) as deviation_ns
from gpu_work
join processes on processes.job = gpu_work.job and processes.id = gpu_work.process
group by gpu_work.job, gpu_work.process, processes.rank, kind, name
order by total_ns desc, gpu_work.job, gpu_work.process, name
