import type { StartSpec } from '@sandwire/internal-api'

/** What signs the certificates of answers to requests that are led through control; workerd puts it inside. */
const AUTHORITY_FILE = '/etc/cloudflare/certs/cloudflare-containers-ca.crt'
/** Where deploy/sandbox/startup.sh adds it. */
const BUNDLE_FILE = '/etc/ssl/certs/ca-certificates.crt'

/** For programs that bring authorities of their own instead of asking the system. */
const TRUST = { NODE_EXTRA_CA_CERTS: AUTHORITY_FILE, REQUESTS_CA_BUNDLE: BUNDLE_FILE }

/** Characters in one variable: Linux takes no more than 128 KiB of it, name and all. */
const MAX_PART_CHARS = 100_000

/** An environment as JSON, in as many variables as it needs. */
function inParts(env: Readonly<Record<string, string>>): Record<string, string> {
  // With no character outside ASCII, so that one is one byte.
  const escape = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  const text = JSON.stringify(env).replaceAll(/[\u0080-\uffff]/g, escape)
  const parts: Record<string, string> = {}
  for (let index = 0; index * MAX_PART_CHARS < text.length; index++) {
    const from = index * MAX_PART_CHARS
    parts[index === 0 ? 'SANDWIRE_ENV' : `SANDWIRE_ENV_${index}`] = text.slice(from, from + MAX_PART_CHARS)
  }
  return parts
}

/** The environment of a container's first process, as deploy/sandbox/startup.sh reads it. `isLed`: its requests go through control. */
export function startupEnv(spec: StartSpec, isLed: boolean): Record<string, string> {
  const { id, publicKey, maxSessions, outputBytesPerSecond } = spec
  const env = { ...(isLed ? TRUST : {}), ...spec.env }
  return {
    SANDWIRE_SANDBOX: id,
    SANDWIRE_PUBLIC_KEY: publicKey,
    ...(Object.keys(env).length === 0 ? {} : inParts(env)),
    ...(maxSessions === undefined ? {} : { SANDWIRE_MAX_SESSIONS: String(maxSessions) }),
    ...(outputBytesPerSecond === undefined
      ? {}
      : { SANDWIRE_OUTPUT_BYTES_PER_SECOND: String(outputBytesPerSecond) }),
  }
}
