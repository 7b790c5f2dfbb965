-- Why each stream of a GPU stood still between two pieces of work: the host came late, launches take time, other (HTA's idle breakdown).
with work as (
    select
        job, process, device, stream, start_ns, launch_ns,
        lag(start_ns + duration_ns) over (
            partition by job, process, device, stream order by start_ns, duration_ns
        ) as before_ns
    from gpu_work
),
gaps as (
    select
        job, process, device, stream,
        case when launch_ns > before_ns then 'host_wait' when start_ns - before_ns < 30000 then 'kernel_wait' else 'other' end as reason,
        start_ns - before_ns as gap_ns
    from work
    where before_ns is not null
)
select
    gaps.job, gaps.process, processes.rank, device, stream, reason,
    count(*) as gaps,
    sum(gap_ns) as idle_ns
from gaps
join processes on processes.job = gaps.job and processes.id = gaps.process
group by gaps.job, gaps.process, processes.rank, device, stream, reason
order by gaps.job, processes.rank, gaps.process, device, stream, reason
