DROP FUNCTION outcome_chartsets;
