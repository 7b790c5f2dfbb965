-- What the threads of each rank did with its time, of ranks without a GPU: computing, communicating, loading data (the view ranks).
with parts as (
    select
        job, process,
        case when step is null then 0 else 1 end as in_steps,
        is_compute, is_communication, is_loading,
        sum(duration_ns) as duration_ns
    from activity
    group by job, process, case when step is null then 0 else 1 end, is_compute, is_communication, is_loading
),
-- Where a program has steps, what came before the first is start-up.
counted as (
    select
        *,
        max(in_steps) over (partition by job, process) as has_steps
    from parts
)
select
    counted.job, processes.rank, counted.process,
    sum(duration_ns) as span_ns,
    sum(case when is_compute = 1 then duration_ns else 0 end) as compute_ns,
    sum(case when is_communication = 1 then duration_ns else 0 end) as communication_ns,
    sum(case when is_communication = 1 and is_compute = 0 then duration_ns else 0 end) as exposed_communication_ns,
    sum(case when is_loading = 1 then duration_ns else 0 end) as data_loading_ns,
    sum(case when is_compute = 0 and is_communication = 0 and is_loading = 0 then duration_ns else 0 end) as idle_ns
from counted
join processes on processes.job = counted.job and processes.id = counted.process
where processes.rank is not null and in_steps = has_steps
group by counted.job, processes.rank, counted.process
order by counted.job, processes.rank, counted.process
