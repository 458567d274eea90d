-- The view of NRI decisions once more, with the same columns: a plugin that asked for nothing but that containers be ended
-- did not agree.

DROP VIEW nri_decisions;

CREATE VIEW nri_decisions AS
SELECT
  r.seq AS seq,
  r.at AS at,
  strftime('%Y-%m-%dT%H:%M:%S', r.at / 1000000000, 'unixepoch') || printf('.%03dZ', r.at / 1000000 % 1000) AS time,
  json_extract(answer.value, '$.plugin') AS plugin,
  json_extract(q.body, '$.effects[' || substr(json_extract(r.body, '$.effect'), instr(json_extract(r.body, '$.effect'), '.') + 1) || '].hook') AS hook,
  CASE
    WHEN json_extract(answer.value, '$.failure.kind') IS NOT NULL THEN json_extract(answer.value, '$.failure.kind')
    WHEN json_extract(answer.value, '$.answer.rejected') IS NOT NULL THEN 'refused'
    WHEN coalesce(json_extract(answer.value, '$.answer.adjust'), '{}') <> '{}' THEN 'adjusted'
    WHEN coalesce(json_extract(answer.value, '$.answer.updates'), '[]') <> '[]' THEN 'updated'
    WHEN coalesce(json_extract(answer.value, '$.answer.evictions'), '[]') <> '[]' THEN 'evicted'
    ELSE 'agreed'
  END AS decision,
  coalesce(json_extract(answer.value, '$.failure.message'), json_extract(answer.value, '$.answer.rejected.reason'))
    AS message,
  json_extract(answer.value, '$.answer') AS answer,
  json_extract(answer.value, '$.durationNs') / 1000000.0 AS duration_ms,
  substr(n.name, 1, instr(n.name, '/') - 1) AS about,
  substr(n.name, instr(n.name, '/') + 1) AS id,
  r.call AS call_seq
FROM records r
JOIN names n ON n.id = r.stream
JOIN records q ON q.seq = r.cause
JOIN json_each(r.body, '$.result.answers') answer
WHERE r.type = (SELECT id FROM names WHERE name = 'effect.ended') AND json_extract(r.body, '$.kind') = 'CallPlugins';
