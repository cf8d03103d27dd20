import type { StartSpec } from '@sandwire/internal'

/** What signs the certificates of answers to requests that are led through control; workerd puts it inside. */
const AUTHORITY_FILE = '/etc/cloudflare/certs/cloudflare-containers-ca.crt'
/** Where deploy/sandbox/startup.sh adds it. */
const BUNDLE_FILE = '/etc/ssl/certs/ca-certificates.crt'

/** For programs that bring authorities of their own instead of asking the system. */
const TRUST = { NODE_EXTRA_CA_CERTS: AUTHORITY_FILE, REQUESTS_CA_BUNDLE: BUNDLE_FILE }

/** The environment of a container's first process, as deploy/sandbox/startup.sh reads it. `isLed`: its requests go through control. */
export function startupEnv(spec: StartSpec, isLed: boolean): Record<string, string> {
  const { id, publicKey, maxSessions, outputBytesPerSecond } = spec
  const env = { ...(isLed ? TRUST : {}), ...spec.env }
  return {
    SANDWIRE_SANDBOX: id,
    SANDWIRE_PUBLIC_KEY: publicKey,
    ...(Object.keys(env).length === 0 ? {} : { SANDWIRE_ENV: JSON.stringify(env) }),
    ...(maxSessions === undefined ? {} : { SANDWIRE_MAX_SESSIONS: String(maxSessions) }),
    ...(outputBytesPerSecond === undefined
      ? {}
      : { SANDWIRE_OUTPUT_BYTES_PER_SECOND: String(outputBytesPerSecond) }),
  }
}
