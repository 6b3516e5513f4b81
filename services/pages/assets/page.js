// What every page adds when scripts run. Without them the pages are complete.
