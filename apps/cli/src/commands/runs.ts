import { decodeRuns, type Run } from '../agent/run-api.ts'
import { printable } from '../text/printable.ts'
import { formatAge, formatJson, formatTable } from '../text/table.ts'
import type { Command } from './command.ts'

const HEADER = ['RUN', 'STATE', 'COST', 'AGE', 'TASK']

function describeState({ state, outcome }: Run): string {
  return outcome ?? state
}

/** Lists the runs of coding agents. */
export const runs: Command = {
  help: `Usage: sbx-stdio runs [--json]

Lists your runs of coding agents, newest first: id, state or outcome, cost, age and task.
See one with: sbx-stdio run show RUN
`,
  options: {},
  parse: () => ({
    run: async ({ api, io, isJson, nowMs }) => {
      const response = await api.request('GET', '/api/runs')
      if (isJson) return io.print(formatJson(response))
      const found = decodeRuns(response)
      if (found.length === 0) return io.info('no runs')
      const rows = found.map((run) => [
        run.id,
        describeState(run),
        `$${run.usage.costUsd.toFixed(2)}`,
        formatAge(run.createdMs, nowMs),
        printable(run.task),
      ])
      return io.print(formatTable(HEADER, rows, io.columns))
    },
  }),
}
