import { judgeCommands } from '@sandwire/internal'
import { shape } from '@sandwire/protocol'
import { type IssuerWish, issuerWishShape } from './issuer-wish.ts'

/** More than anybody signs in through. */
const MAX_ISSUERS = 16

/** What a settings file says. */
export interface SettingsFile {
  readonly issuers: readonly IssuerWish[]
  /** Keys that are control's to judge, as they are. */
  readonly passed: Readonly<Record<string, unknown>>
}

const perMinute = shape.optional(shape.whole(0, 1_000_000))

/** Settings of control that an operator may set, and what they may be, which is what control takes. */
const PASSED: Readonly<Record<string, (value: unknown, problems: string[]) => unknown>> = {
  commands: judgeCommands,
  limits: shape.record({
    attachesPerMinutePerAddress: perMinute,
    attachesPerMinutePerUser: perMinute,
    strangersPerMinutePerAddress: perMinute,
    sessionsPerSandbox: shape.optional(shape.whole(1, 10_000)),
    outputBytesPerSecond: shape.optional(shape.whole(0, 2 ** 40)),
  }).decode,
  sessionTokenMinutes: shape.whole(15, 60).decode,
  tokenInUrl: shape.bool.decode,
}

const issuersShape = shape.list(issuerWishShape, MAX_ISSUERS)
const NOTHING: SettingsFile = { issuers: [], passed: {} }

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value))
      : undefined
  } catch {
    return undefined
  }
}

function judgeIssuers(file: string, value: unknown, problems: string[]): readonly IssuerWish[] {
  const issuers = issuersShape.decode(value ?? [])
  if (issuers !== undefined) return issuers
  const wrong = Array.isArray(value)
    ? value.findIndex((each) => issuerWishShape.decode(each) === undefined)
    : -1
  problems.push(
    wrong < 0
      ? `"${file}": "issuers" must be a list of at most ${MAX_ISSUERS}`
      : `"${file}": entry ${wrong + 1} of "issuers" is not understood; docs/operations.md has its keys`,
  )
  return []
}

/** Reads the settings file if there is one, and says what is wrong with it. */
export function judgeSettingsFile(
  file: string,
  readFile: (file: string) => string | undefined,
  problems: string[],
): SettingsFile {
  let text: string | undefined
  try {
    text = readFile(file)
  } catch (error) {
    problems.push(`"${file}" cannot be used: ${error instanceof Error ? error.message : 'it cannot be read'}`)
    return NOTHING
  }
  if (text === undefined) return NOTHING
  const all = parse(text)
  if (all === undefined) {
    problems.push(`"${file}" cannot be used: it is not a JSON object`)
    return NOTHING
  }
  const { issuers, ...passed } = all
  for (const [key, value] of Object.entries(passed)) {
    const judge = Object.hasOwn(PASSED, key) ? PASSED[key] : undefined
    if (judge === undefined)
      problems.push(
        `"${file}" cannot be used: "${key}" is not a setting; there are issuers, ${Object.keys(PASSED).join(', ')}`,
      )
    else if (judge(value, problems) === undefined)
      problems.push(
        `"${file}" cannot be used: "${key}" is not understood; docs/operations.md says what it may be`,
      )
  }
  return { issuers: judgeIssuers(file, issuers, problems), passed }
}
