import type { StartSpec } from '@sandwire/internal-api'

/** CA certificate of intercepted HTTPS requests; workerd adds it to the container. */
const CA_FILE = '/etc/cloudflare/certs/cloudflare-containers-ca.crt'
/** CA bundle that deploy/sandbox/startup.sh adds it to. */
const BUNDLE_FILE = '/etc/ssl/certs/ca-certificates.crt'

/** For programs that do not use the system's CA bundle. */
const TRUST = { NODE_EXTRA_CA_CERTS: CA_FILE, REQUESTS_CA_BUNDLE: BUNDLE_FILE }

export interface StartupOptions {
  /** Its HTTP requests go through control. */
  readonly isIntercepted: boolean
  /** Control saves its files. */
  readonly savesFiles: boolean
}

/** Characters in one variable: Linux allows 128 KiB including the name. */
const MAX_PART_CHARS = 100_000

/** Splits an environment, as JSON, into as many variables as needed. */
function splitEnv(env: Readonly<Record<string, string>>): Record<string, string> {
  // ASCII only, so that a character is one byte.
  const escape = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  const text = JSON.stringify(env).replaceAll(/[\u0080-\uffff]/g, escape)
  const parts: Record<string, string> = {}
  for (let index = 0; index * MAX_PART_CHARS < text.length; index++) {
    const from = index * MAX_PART_CHARS
    parts[index === 0 ? 'SANDWIRE_ENV' : `SANDWIRE_ENV_${index}`] = text.slice(from, from + MAX_PART_CHARS)
  }
  return parts
}

/**
 * How long sandboxd waits for the last save when the platform ends its container. Cloudflare kills a container 15 minutes after SIGTERM.
 * An object that was evicted begins to save with its next alarm.
 */
const LAST_SAVE_SECONDS = 120

/** The environment of a container's first process, as deploy/sandbox/startup.sh reads it. */
export function startupEnv(
  spec: StartSpec,
  { isIntercepted, savesFiles }: StartupOptions,
): Record<string, string> {
  const { id, publicKey, maxSessions, outputBytesPerSecond } = spec
  const env = { ...(isIntercepted ? TRUST : {}), ...spec.env }
  return {
    SANDWIRE_SANDBOX: id,
    SANDWIRE_PUBLIC_KEY: publicKey,
    ...(savesFiles ? { SANDWIRE_LAST_SAVE_SECONDS: String(LAST_SAVE_SECONDS) } : {}),
    ...(Object.keys(env).length === 0 ? {} : splitEnv(env)),
    ...(maxSessions === undefined ? {} : { SANDWIRE_MAX_SESSIONS: String(maxSessions) }),
    ...(outputBytesPerSecond === undefined
      ? {}
      : { SANDWIRE_OUTPUT_BYTES_PER_SECOND: String(outputBytesPerSecond) }),
  }
}
