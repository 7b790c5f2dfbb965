-- Operators and ranges by the bytes that they allocated themselves and did not free.
select
    name,
    is_user,
    count(*) as calls,
    sum(self_cpu_bytes) as self_cpu_total_bytes,
    sum(self_device_bytes) as self_device_total_bytes
from ranges
group by name, is_user
having sum(self_cpu_bytes) <> 0 or sum(self_device_bytes) <> 0
order by self_device_total_bytes desc, self_cpu_total_bytes desc, name, is_user
limit 50
