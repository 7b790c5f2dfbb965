-- Functions by the time that samples found in them: as the innermost frame.
select
    stacks.function,
    stacks.file,
    sum(samples.count) as sample_count,
    sum(samples.covered_ns) as self_total_ns
from samples
join stacks on stacks.job = samples.job and stacks.process = samples.process and stacks.stack = samples.stack
where stacks.frame = 0
group by stacks.function, stacks.file
order by self_total_ns desc, stacks.function, stacks.file
limit 50
