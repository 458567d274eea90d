-- The views of pods and containers once more, with the same columns, so that they can be joined: SQLite looked at all of one
-- for each row of the other. The making of a thing is the first record of its stream: no other is looked at to find it.

DROP VIEW pods;

CREATE VIEW pods AS
SELECT
  substr(n.name, 9) AS id,
  json_extract(r.body, '$.config.metadata.namespace') AS namespace,
  json_extract(r.body, '$.config.metadata.name') AS name,
  json_extract(r.body, '$.config.metadata.uid') AS uid,
  coalesce(json_extract(r.body, '$.config.metadata.attempt'), 0) AS attempt,
  json_extract(r.body, '$.config.labels') AS labels,
  json_extract(r.body, '$.config.annotations') AS annotations,
  (SELECT strftime('%Y-%m-%dT%H:%M:%S', at / 1000000000, 'unixepoch') || printf('.%03dZ', at / 1000000 % 1000) FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'sandbox.ready') LIMIT 1) AS ready,
  (SELECT strftime('%Y-%m-%dT%H:%M:%S', at / 1000000000, 'unixepoch') || printf('.%03dZ', at / 1000000 % 1000) FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'sandbox.stopped') LIMIT 1) AS stopped,
  (SELECT strftime('%Y-%m-%dT%H:%M:%S', at / 1000000000, 'unixepoch') || printf('.%03dZ', at / 1000000 % 1000) FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'sandbox.removed') LIMIT 1) AS removed,
  (SELECT json_extract(body, '$.failure.message') FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'sandbox.failed') LIMIT 1) AS failure,
  r.seq AS seq,
  r.at AS at,
  strftime('%Y-%m-%dT%H:%M:%S', r.at / 1000000000, 'unixepoch') || printf('.%03dZ', r.at / 1000000 % 1000) AS time
FROM names n
JOIN records r ON r.stream = n.id
  AND r.seq = (SELECT min(seq) FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id)
WHERE n.name >= 'sandbox/' AND n.name < 'sandbox0' AND r.type = (SELECT id FROM names WHERE name = 'sandbox.requested');

DROP VIEW containers;

CREATE VIEW containers AS
SELECT
  substr(n.name, 11) AS id,
  json_extract(r.body, '$.config.metadata.name') AS name,
  coalesce(json_extract(r.body, '$.config.metadata.attempt'), 0) AS attempt,
  json_extract(r.body, '$.podSandboxId') AS pod_id,
  (
    SELECT json_extract(p.body, '$.config.metadata.namespace') FROM records p
    WHERE typeof(p.stream) = 'integer' AND p.stream = (SELECT +id FROM names WHERE name = 'sandbox/' || json_extract(r.body, '$.podSandboxId'))
      AND p.type = (SELECT id FROM names WHERE name = 'sandbox.requested') LIMIT 1
  ) AS namespace,
  (
    SELECT json_extract(p.body, '$.config.metadata.name') FROM records p
    WHERE typeof(p.stream) = 'integer' AND p.stream = (SELECT +id FROM names WHERE name = 'sandbox/' || json_extract(r.body, '$.podSandboxId'))
      AND p.type = (SELECT id FROM names WHERE name = 'sandbox.requested') LIMIT 1
  ) AS pod,
  coalesce(nullif(json_extract(r.body, '$.config.image.userSpecifiedImage'), ''), json_extract(r.body, '$.config.image.image')) AS image,
  json_extract(r.body, '$.imageId') AS image_id,
  json_extract(r.body, '$.config.labels') AS labels,
  (SELECT strftime('%Y-%m-%dT%H:%M:%S', at / 1000000000, 'unixepoch') || printf('.%03dZ', at / 1000000 % 1000) FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'container.started') LIMIT 1) AS started,
  (SELECT json_extract(body, '$.pid') FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'container.started') LIMIT 1) AS pid,
  (SELECT strftime('%Y-%m-%dT%H:%M:%S', at / 1000000000, 'unixepoch') || printf('.%03dZ', at / 1000000 % 1000) FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'container.exited') LIMIT 1) AS exited,
  (SELECT json_extract(body, '$.exitStatus') FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'container.exited') LIMIT 1) AS exit_status,
  (SELECT json_extract(body, '$.reason') FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'container.exited') LIMIT 1) AS reason,
  (SELECT strftime('%Y-%m-%dT%H:%M:%S', at / 1000000000, 'unixepoch') || printf('.%03dZ', at / 1000000 % 1000) FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'container.removed') LIMIT 1) AS removed,
  (SELECT json_extract(body, '$.failure.message') FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'container.failed') LIMIT 1) AS failure,
  r.seq AS seq,
  r.at AS at,
  strftime('%Y-%m-%dT%H:%M:%S', r.at / 1000000000, 'unixepoch') || printf('.%03dZ', r.at / 1000000 % 1000) AS time
FROM names n
JOIN records r ON r.stream = n.id
  AND r.seq = (SELECT min(seq) FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id)
WHERE n.name >= 'container/' AND n.name < 'container0' AND r.type = (SELECT id FROM names WHERE name = 'container.requested');
