import { formatCost, formatDuration } from "../../../pure/format.ts";
import type { NodeActivity } from "../../../pure/graph_activity.ts";
import { graph as text } from "../../../text/graph.ts";

/** Returns the cost of a node's model calls; `undefined` if it made none. */
export function costOf({ cost }: Pick<NodeActivity, "cost">): string | undefined {
  return cost.model_calls > 0 ? formatCost(cost) : undefined;
}

/** Returns the facts that fit on a node of the drawing. */
export function shortFacts(activity: NodeActivity): string[] {
  if (activity.executions === 0) return [];
  const facts = [text.times(activity.executions), formatDuration(activity.workedMs)];
  const cost = costOf(activity);
  return cost === undefined ? facts : [...facts, cost];
}

/** Returns the tasks of the last superstep, in words. */
export function taskFacts({ tasks }: NodeActivity): string | undefined {
  if (!tasks) return undefined;
  const counts = tasks.counts.map(([outcome, count]) => text.taskCount(count, outcome));
  return `${text.tasks(tasks.total)}. ${text.tasksNow(counts)}`;
}

/** Returns the same facts as full phrases, for the outline and for screen readers. */
export function longFacts(activity: NodeActivity): string[] {
  const facts = [text.statuses[activity.status]];
  if (activity.executions > 0) {
    facts.push(text.executions(activity.executions));
    if (activity.failures > 0) facts.push(text.failures(activity.failures));
    facts.push(text.worked(formatDuration(activity.workedMs)));
  }
  if (activity.waitedMs > 0) facts.push(text.waited(formatDuration(activity.waitedMs)));
  const cost = costOf(activity);
  if (cost !== undefined) facts.push(cost);
  const tasks = taskFacts(activity);
  if (tasks !== undefined) facts.push(tasks);
  return facts;
}
