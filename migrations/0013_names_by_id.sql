-- Things by their ids alone, without what their streams' names begin with: what joins a view of pods or containers with
-- another asks for them so.

CREATE UNIQUE INDEX names_of_pods ON names (substr(name, 9)) WHERE name >= 'sandbox/' AND name < 'sandbox0';
CREATE UNIQUE INDEX names_of_containers ON names (substr(name, 11)) WHERE name >= 'container/' AND name < 'container0';
