const LOOPBACK = 'localhost,127.0.0.1,::1'

/**
 * Keeps requests to this machine, and the token in them, away from a proxy that the environment names. Bun's `fetch`
 * looks at these variables for every request and has no exception of its own for loopback (1.4).
 */
export function keepLoopbackDirect(env: Record<string, string | undefined>): void {
  const given = env['no_proxy'] ?? env['NO_PROXY'] ?? ''
  const names = given === '' ? LOOPBACK : `${given},${LOOPBACK}`
  env['no_proxy'] = names
  env['NO_PROXY'] = names
}
