import {
  ACTIVE_HOUR,
  capacityOf,
  costOfHour,
  costOfWatching,
  type Hour,
  IDLE_HOUR,
  LOOKS_PER_HOUR,
  ROWS_PER_LOOK,
  STORED_GB,
} from './model.ts'
import { INSTANCE_TYPES, PLAN_PER_MONTH, PRICES } from './prices.ts'

const SANDBOXES = 1_000
const HOURS_PER_MONTH = 730
/** Working days of a month, hours that a sandbox runs on each, and how many of those somebody works. */
const OFFICE = { days: 22, hours: 8, active: 3 }
const MILLION = 1_000_000
/** Of all sandboxes, in the simulated day. */
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

/** All of it, as Markdown. */
export function describeCosts(): string {
  const hours = INSTANCE_TYPES.map((type) => {
    const idle = costOfHour(type, IDLE_HOUR)
    const active = costOfHour(type, ACTIVE_HOUR)
    const office =
      OFFICE.days * (OFFICE.active * active.total + (OFFICE.hours - OFFICE.active) * idle.total) * SANDBOXES
    const always = HOURS_PER_MONTH * idle.total * SANDBOXES
    return [
      `\`${type.name}\``,
      dollars(idle.total),
      dollars(active.total),
      dollars(idle.control),
      `$${whole(office)}`,
      `$${whole(always)}`,
    ]
  })
  const rooms = INSTANCE_TYPES.map((type) => {
    const { sandboxes, by } = capacityOf(type)
    const accounts = (running: number): string => whole(Math.ceil(running / sandboxes))
    return [`\`${type.name}\``, whole(sandboxes), by, accounts(MILLION), accounts(MILLION * RUNNING_SHARE)]
  })
  const stored = SANDBOXES * STORED_GB * PRICES.storedGbMonth
  return [
    `${describe(IDLE_HOUR, 'Idle')} ${describe(ACTIVE_HOUR, 'Active')}`,
    `Running, an object looks after its sandbox ${LOOKS_PER_HOUR} times an hour and writes up to ${ROWS_PER_LOOK} rows each time. An office month is ` +
      `${OFFICE.days} days of ${OFFICE.hours} hours, ${OFFICE.active} of them active; otherwise the sandbox is stopped.`,
    '',
    table(
      [
        'instance',
        'idle hour',
        'active hour',
        "control's part of an idle one",
        `${whole(SANDBOXES)} for an office month`,
        `${whole(SANDBOXES)} idle all month`,
      ],
      hours,
    ),
    '',
    `Stopped, ${whole(SANDBOXES)} sandboxes cost ${dollars(stored)} a month for what is stored of them. The plan costs $${PLAN_PER_MONTH} a month, and what it includes is not taken off. ` +
      `Of control's part, ${dollars(costOfWatching())} is the object of the sandbox: it waits for the end of its container, and is in memory as long as that runs.`,
    '',
    table(
      [
        'instance',
        'run at once in one account',
        'bound by',
        'accounts for a million that run',
        `for a million of which ${RUNNING_SHARE * 100} % run`,
      ],
      rooms,
    ),
    '',
    `${RUNNING_SHARE * 100} % is what runs of sandboxes that stop after 10 idle minutes. Here one does so only if it was created with \`sleepAfterSeconds\`; any other runs until somebody stops it.`,
  ].join('\n')
}
