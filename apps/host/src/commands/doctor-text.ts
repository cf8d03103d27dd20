import type { IdentityFinding } from '../doctor/identity.ts'
import type { ProbeReport } from '../doctor/probe-report.ts'

/** Everything `doctor` found out about this machine. */
export interface DoctorFacts {
  /** Programs with their versions; null for one that is missing. */
  readonly programs: readonly (readonly [name: string, version: string | null])[]
  readonly data: {
    readonly folder: string
    /** Why nothing can be kept there. */
    readonly obstacle: string | null
    readonly freeBytes: number | null
    readonly holder: string | null
  }
  readonly port: { readonly number: number; readonly obstacle: string | null }
  /** How people come in, and whether that works. */
  readonly identity: readonly IdentityFinding[]
  readonly isolation: string
  readonly weaknesses: readonly string[]
  /** Why sandboxes are less isolated than they could be. */
  readonly notice: string | null
  /** What limits memory, processes and processor time, and what limits disk. */
  readonly limits: { readonly processes: string; readonly disk: string }
}

const GIBIBYTE = 1024 ** 3
const LABEL_WIDTH = 13

function row(label: string, text: string): string {
  return `${label.padEnd(LABEL_WIDTH)}${text}\n`
}

/** What was found, before anything is tried. */
export function composeFindings(facts: DoctorFacts): string {
  const { programs, data, port, identity, isolation, weaknesses, notice, limits } = facts
  const free = data.freeBytes === null ? 'not made yet' : `${(data.freeBytes / GIBIBYTE).toFixed(1)} GiB free`
  const holder = data.holder === null ? '' : `, used by ${data.holder}`
  return [
    row('Programs', programs.map(([name, version]) => `${name} ${version ?? 'missing'}`).join(', ')),
    row(
      'Data folder',
      data.obstacle === null
        ? `${data.folder} (${free}${holder})`
        : `${data.folder} cannot be used: ${data.obstacle}`,
    ),
    row('Port', `${port.number} is ${port.obstacle ?? 'free'}`),
    ...identity.map(({ line, isGood }, at) =>
      row(at === 0 ? 'Identity' : '', isGood ? line : `wrong: ${line}`),
    ),
    row('Isolation', isolation),
    ...[...(notice === null ? [] : [notice]), ...weaknesses].map((line) => row('', `weak: ${line}`)),
    row('Limits', `processes by ${limits.processes}, disk by ${limits.disk}`),
  ].join('')
}

const MARKS = { ok: 'ok  ', weak: 'weak', failed: 'FAIL' } as const

/** One line for each attempt to get out of a sandbox, and what it comes to. */
export function composeBattery(reports: readonly ProbeReport[]): string {
  const width = Math.max(0, ...reports.map(({ name }) => name.length)) + 2
  const lines = reports.map(
    ({ name, verdict, line }) => `  ${MARKS[verdict]}  ${name.padEnd(width)}${line}\n`,
  )
  const count = (verdict: ProbeReport['verdict']): number =>
    reports.filter((each) => each.verdict === verdict).length
  const sum = `${reports.length} attempts to get out: ${count('ok')} held, ${count('weak')} held weakly, ${count('failed')} got through\n`
  return `${lines.join('')}${sum}`
}
