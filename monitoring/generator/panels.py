"""Panels and expressions that the dashboards have in common: their style is decided here once."""

from grafana_foundation_sdk.builders import common, prometheus, stat, statetimeline, timeseries
from grafana_foundation_sdk.builders.dashboard import DashboardLink, FieldColor, ThresholdsConfig
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    BigValueTextMode,
    GraphThresholdsStyleMode,
    LegendDisplayMode,
    LegendPlacement,
    ScaleDistribution,
    SortOrder,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
    DashboardRangeMapOptions,
    DataSourceRef,
    FieldColorModeId,
    RangeMap,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
)

DATASOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
SCOPE = 'job=~"$job", instance=~"$instance"'


def metric(name, *matchers):
    """The series of a metric within the selected jobs and instances."""
    return f"{name}{{{', '.join([SCOPE, *matchers])}}}"


def rate(name, *matchers):
    """The increase of a counter per second."""
    return f"rate({metric(name, *matchers)}[$__rate_interval])"


def total(expression, by=""):
    """The sum of series, one for each combination of the labels `by`."""
    return f"sum by ({by}) ({expression})" if by else f"sum({expression})"


def occurring(name, *matchers, by):
    """The increase of a counter per second, without label values that did not occur within the selected time."""
    occurred = total(f"increase({metric(name, *matchers)}[$__range])", by)
    return f"{total(rate(name, *matchers), by)} and {occurred} > 0"


def quantile(value, histogram, *matchers, by=""):
    """A quantile of a histogram, one for each combination of the labels `by`."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({value}, {total(rate(f'{histogram}_bucket', *matchers), labels)})"


def share(part, whole, by=""):
    """A part of a rate. 0 where only the part has no series, no data where the whole is 0."""
    whole = total(whole, by)
    return f"({total(part, by)} or 0 * {whole}) / ({whole} > 0)"


def steps(*pairs):
    """Thresholds: pairs of a color and the value from which it applies."""
    values = [Threshold(color=color, value=value) for color, value in pairs]
    return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(values)


def rising(warning, critical):
    """Thresholds of a value that must not rise."""
    return steps(("green", None), ("orange", warning), ("red", critical))


def falling(critical, warning):
    """Thresholds of a value that must not fall."""
    return steps(("red", None), ("orange", critical), ("green", warning))


STATE = steps(("red", None), ("orange", 0.001), ("green", 1))
NEUTRAL = steps(("text", None))
CALM = steps(("green", None))


def availability(up, down, partly):
    """Texts of a value from 0 (in no replica) to 1 (in all)."""
    ends = {
        "1": ValueMappingResult(text=up, color="green", index=0),
        "0": ValueMappingResult(text=down, color="red", index=1),
    }
    between = ValueMappingResult(text=partly, color="orange", index=2)
    return [ValueMap(ends), RangeMap(DashboardRangeMapOptions(from_val=0.001, to=0.999, result=between))]


def runbook(alert):
    """A link to the section of an alert. Its address is a variable, since each installation serves its own."""
    link = DashboardLink(f"Runbook: {alert}").type(DashboardLinkType.LINK)
    return link.url(f"${{runbook}}#{alert.lower()}").target_blank(True)


def queries(panel, expressions, *, instant):
    """Adds the queries A, B, ... of pairs of a legend and an expression."""
    for index, (legend, expression) in enumerate(expressions.items()):
        query = prometheus.Dataquery().ref_id(chr(ord("A") + index)).expr(expression).legend_format(legend)
        panel.with_target(query.instant() if instant else query.range())
    return panel.datasource(DATASOURCE)


def number(title, description, unit, thresholds, expressions, *, background=False, empty="No data", alert=None):
    """A stat panel: the current values of instant queries, so that an outage never shows an older value.

    `empty` is shown without data. `alert` is the alert whose section of the runbook is linked.
    """
    if isinstance(expressions, str):
        expressions = {"": expressions}
    several = len(expressions) > 1
    panel = (
        stat.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .thresholds(thresholds)
        .color_scheme(FieldColor().mode(FieldColorModeId.THRESHOLDS))
        .no_value(empty)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).fields("").values(False))
        .graph_mode(BigValueGraphMode.NONE)
        .color_mode(BigValueColorMode.BACKGROUND_SOLID if background else BigValueColorMode.VALUE)
        .text_mode(BigValueTextMode.VALUE_AND_NAME if several else BigValueTextMode.VALUE)
        .height(4)
        .span(3)
    )
    if alert:
        panel.links([runbook(alert)])
    return queries(panel, expressions, instant=True)


def state(title, description, expression, alert, texts=("Up", "Down", "Partly")):
    """A stat panel of a value from 0 to 1: green, red, or orange in between."""
    panel = number(title, description, "percentunit", STATE, expression, background=True, alert=alert)
    return panel.mappings(availability(*texts))


def states(title, description, expressions, thresholds=STATE, texts=("Up", "Down", "Partly")):
    """A state timeline of values from 0 to 1."""
    panel = (
        statetimeline.Panel()
        .title(title)
        .description(description)
        .thresholds(thresholds)
        .color_scheme(FieldColor().mode(FieldColorModeId.THRESHOLDS))
        .mappings(availability(*texts) if texts else [])
        .show_value(VisibilityMode.NEVER)
        .merge_values(True)
        .row_height(0.8)
        .fill_opacity(80)
        .line_width(0)
        .legend(common.VizLegendOptions().show_legend(False))
        .tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.SINGLE).sort(SortOrder.NONE))
        .height(5)
        .span(24)
    )
    return queries(panel, expressions, instant=False)


def graph(title, description, unit, expressions, *, width=8, stacked=False, logarithmic=False, limit=None, top=None):
    """A time series panel. `limit` draws a dashed line, `top` ends the axis."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .color_scheme(FieldColor().mode(FieldColorModeId.PALETTE_CLASSIC))
        .line_width(1)
        .fill_opacity(40 if stacked else 8)
        .show_points(VisibilityMode.NEVER)
        .span_nulls(False)
        .stacking(common.StackingConfig().mode(StackingMode.NORMAL if stacked else StackingMode.NONE).group("A"))
        .legend(legend())
        .tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
        .height(8)
        .span(width)
    )
    if logarithmic:
        panel.scale_distribution(common.ScaleDistributionConfig().type(ScaleDistribution.LOG).log(10))
    else:
        panel.min(0)
    if top is not None:
        panel.max(top)
    if limit is not None:
        panel.thresholds(steps(("transparent", None), ("red", limit)))
        panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(GraphThresholdsStyleMode.DASHED))
    else:
        panel.thresholds(CALM)
    return queries(panel, expressions, instant=False)


def legend():
    """A list of the series below a graph."""
    options = common.VizLegendOptions().show_legend(True)
    return options.display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM).calcs([])
