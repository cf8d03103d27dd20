import {
  ACTIVE_HOUR,
  capacityOf,
  costOfHour,
  costOfMonitoring,
  type Hour,
  IDLE_HOUR,
  POLLS_PER_HOUR,
  ROWS_PER_POLL,
  STORED_GB,
} from './model.ts'
import { INSTANCE_TYPES, PLAN_PER_MONTH, PRICES } from './prices.ts'

const SANDBOXES = 1_000
const HOURS_PER_MONTH = 730
/** Days of a working month, hours that a sandbox runs on each, and how many of those it is active. */
const WORKING_MONTH = { days: 22, hours: 8, active: 3 }
const MILLION = 1_000_000
/** Running sandboxes as a share of all, in the simulated day. */
const RUNNING_SHARE = 0.13

const dollars = (amount: number, digits = 4): string => `$${amount.toFixed(digits)}`
const whole = (amount: number): string => Math.round(amount).toLocaleString('en-US')
const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n')
}

function describe(hour: Hour, name: string): string {
  const egress = hour.egressGb === 0 ? 'no output' : `${hour.egressGb * 1000} MB of output`
  return `${name}: ${hour.cpuShare * 100} % of the instance's processor, ${egress}, ${hour.requests} requests.`
}

/** All tables and their assumptions, as Markdown. */
export function describeCosts(): string {
  const hours = INSTANCE_TYPES.map((type) => {
    const idle = costOfHour(type, IDLE_HOUR)
    const active = costOfHour(type, ACTIVE_HOUR)
    const { days, hours: running, active: busy } = WORKING_MONTH
    const working = days * (busy * active.total + (running - busy) * idle.total) * SANDBOXES
    const always = HOURS_PER_MONTH * idle.total * SANDBOXES
    return [
      `\`${type.name}\``,
      dollars(idle.total),
      dollars(active.total),
      dollars(idle.control),
      `$${whole(working)}`,
      `$${whole(always)}`,
    ]
  })
  const capacities = INSTANCE_TYPES.map((type) => {
    const { sandboxes, by } = capacityOf(type)
    const accounts = (running: number): string => whole(Math.ceil(running / sandboxes))
    return [`\`${type.name}\``, whole(sandboxes), by, accounts(MILLION), accounts(MILLION * RUNNING_SHARE)]
  })
  const stored = SANDBOXES * STORED_GB * PRICES.storedGbMonth
  return [
    `${describe(IDLE_HOUR, 'Idle')} ${describe(ACTIVE_HOUR, 'Active')}`,
    `While a sandbox runs, its object polls it ${POLLS_PER_HOUR} times an hour and writes up to ${ROWS_PER_POLL} rows each time. A working month has ` +
      `${WORKING_MONTH.days} days of ${WORKING_MONTH.hours} hours, ${WORKING_MONTH.active} of them active; otherwise the sandbox is stopped.`,
    '',
    table(
      [
        'instance',
        'idle hour',
        'active hour',
        'of an idle hour, the cost of control',
        `${whole(SANDBOXES)} sandboxes, working month`,
        `${whole(SANDBOXES)} sandboxes, idle all month`,
      ],
      hours,
    ),
    '',
    `${whole(SANDBOXES)} stopped sandboxes cost ${dollars(stored)} a month for storage. The plan costs $${PLAN_PER_MONTH} a month; the usage that it includes is not deducted here. ` +
      `Of the cost of control, ${dollars(costOfMonitoring())} is the sandbox's object, which stays in memory while its container runs, because it waits for the container's end.`,
    '',
    table(
      [
        'instance',
        'running at once in one Cloudflare account',
        'limited by',
        'Cloudflare accounts for a million running sandboxes',
        `Cloudflare accounts for a million, ${RUNNING_SHARE * 100} % running`,
      ],
      capacities,
    ),
    '',
    `If sandboxes stop after 10 idle minutes, ${RUNNING_SHARE * 100} % of them run at a time. On Cloudflare a sandbox stops when idle only if it was created with \`sleepAfterSeconds\`; others run until they are stopped.`,
  ].join('\n')
}
