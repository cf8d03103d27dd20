/** What an operator says about a deployment, in `deploy/cloudflare/settings.json`. */
export interface DeploySettings {
  /** Where people reach it: `https://NAME.ACCOUNT.workers.dev`, or a domain of one's own. */
  readonly url: string
  /** Name of the Worker. */
  readonly name?: string
  /** Size of the sandboxes' containers. */
  readonly instanceType?: string
  /** Sandboxes that may run at once. */
  readonly maxInstances?: number
  /** Name of the R2 bucket. */
  readonly bucket?: string
  /** Image that sandboxes are built on; default: that of the Dockerfile. */
  readonly base?: string
  /** Settings of control beside those that the deployment decides: issuers, limits, commands and so on. */
  readonly control?: Readonly<Record<string, unknown>>
}

/** What follows from where control runs. */
const DECIDED = ['mode', 'provider', 'workspaceMode', 'hosts', 'publicOrigins', 'localTokenSha256']

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** An https URL without a path, as `URL.origin` spells it. */
function isOrigin(value: unknown): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false
  const { protocol, origin } = new URL(value)
  return protocol === 'https:' && origin === value
}

function isControl(value: unknown): boolean {
  return isRecord(value) && DECIDED.every((key) => !Object.hasOwn(value, key))
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && /^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/.test(value)
}

/** For each key, what it has to be and how that is told. */
const RULES: Readonly<
  Record<keyof DeploySettings, readonly [fits: (value: unknown) => boolean, told: string]>
> = {
  url: [isOrigin, 'expected https://HOST without a path'],
  name: [isName, 'expected 3 to 63 lower-case letters, digits and inner hyphens'],
  instanceType: [
    (value) => typeof value === 'string' && /^(?:lite|basic|standard-[1-4])$/.test(value),
    'expected lite, basic or standard-1 to standard-4',
  ],
  maxInstances: [(value) => Number.isSafeInteger(value) && Number(value) >= 1, 'expected a whole number'],
  bucket: [isName, 'expected 3 to 63 lower-case letters, digits and inner hyphens'],
  base: [
    (value) => typeof value === 'string' && /^[\w][\w./:@-]*$/.test(value),
    'expected the name of an image',
  ],
  control: [isControl, `expected settings of control without ${DECIDED.join(', ')}`],
}

function isSettings(value: unknown, problems: readonly string[]): value is DeploySettings {
  return problems.length === 0 && isRecord(value)
}

/** Reads the settings; throws with all that is wrong with them. */
export function decodeSettings(text: string): DeploySettings {
  const value: unknown = JSON.parse(text)
  const given = isRecord(value) ? value : {}
  const problems = Object.entries(RULES)
    .filter(([key, [fits]]) => (key === 'url' || Object.hasOwn(given, key)) && !fits(given[key]))
    .map(([key, [, told]]) => `${key}: ${told}`)
  for (const key of Object.keys(given)) if (!Object.hasOwn(RULES, key)) problems.push(`${key}: unknown`)
  if (isSettings(value, problems)) return value
  throw new Error(`Cannot use the settings of the deployment: ${problems.join('; ')}`)
}
