-- What the GPU of each rank did with its time: computing, communicating, overlap of both, idle (HTA's temporal breakdown).
with work as (
    select
        job, process, start_ns, start_ns + duration_ns as end_ns,
        case when kind <> 'kernel' then 'copy' when name like 'nccl%Kernel%' then 'communication' else 'compute' end as does
    from gpu_work
),
busy as (
    select
        job, process, does, start_ns, end_ns,
        max(end_ns) over (
            partition by job, process order by start_ns, end_ns rows between unbounded preceding and 1 preceding
        ) as all_until_ns,
        max(case when does <> 'copy' then end_ns end) over (
            partition by job, process order by start_ns, end_ns rows between unbounded preceding and 1 preceding
        ) as kernels_until_ns,
        max(end_ns) over (
            partition by job, process, does order by start_ns, end_ns rows between unbounded preceding and 1 preceding
        ) as same_until_ns
    from work
),
parts as (
    select
        job, process, does, start_ns, end_ns,
        greatest(end_ns - greatest(start_ns, coalesce(all_until_ns, start_ns)), 0) as any_ns,
        case when does = 'copy' then 0
            else greatest(end_ns - greatest(start_ns, coalesce(kernels_until_ns, start_ns)), 0) end as kernels_ns,
        greatest(end_ns - greatest(start_ns, coalesce(same_until_ns, start_ns)), 0) as same_ns
    from busy
),
sums as (
    select
        job, process,
        max(end_ns) - min(start_ns) as span_ns,
        sum(any_ns) as busy_ns,
        sum(kernels_ns) as kernels_ns,
        sum(case when does = 'compute' then same_ns else 0 end) as compute_ns,
        sum(case when does = 'communication' then same_ns else 0 end) as communication_ns,
        sum(case when does = 'copy' then same_ns else 0 end) as copy_ns
    from parts
    group by job, process
)
select
    sums.job, sums.process, processes.rank,
    span_ns,
    span_ns - busy_ns as idle_ns,
    compute_ns,
    busy_ns - compute_ns as non_compute_ns,
    communication_ns,
    kernels_ns - compute_ns as exposed_communication_ns,
    compute_ns + communication_ns - kernels_ns as overlap_ns,
    copy_ns
from sums
join processes on processes.job = sums.job and processes.id = sums.process
order by sums.job, processes.rank, sums.process
