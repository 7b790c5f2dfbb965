-- The most bytes held at once, of each process and device, and when: allocations whose free was seen or is yet to come.
with changes as (
    select
        job, process, device_type, device_index, address, time_ns, is_free, size_bytes,
        lag(is_free) over at_address as was_free,
        lag(size_bytes) over at_address as size_before
    from memory
    window at_address as (partition by job, process, device_type, device_index, address order by time_ns, is_free desc)
),
held as (
    select
        job, process, device_type, device_index, time_ns,
        sum(case when is_free = 0 then size_bytes else 0 end
            - case when was_free = 0 then size_before else 0 end) over (
            partition by job, process, device_type, device_index
            order by time_ns, is_free desc, address rows between unbounded preceding and current row
        ) as held_bytes
    from changes
),
ranked as (
    select
        job, process, device_type, device_index, held_bytes, time_ns,
        row_number() over (
            partition by job, process, device_type, device_index order by held_bytes desc, time_ns
        ) as place
    from held
)
select job, process, device_type, device_index, held_bytes as peak_bytes, time_ns
from ranked
where place = 1
order by peak_bytes desc, job, process, device_type, device_index
