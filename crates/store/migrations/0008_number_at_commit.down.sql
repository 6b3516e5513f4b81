DROP TRIGGER pending_changes_number ON pending_changes;
DROP FUNCTION number_changes;
