/** Port of the credential gateway inside a sandbox of the host, on loopback and independent of the network policy. */
export const GATEWAY_PORT = 3129

/** Name of the credential gateway inside a container; its HTTP requests are intercepted under every network policy. */
export const GATEWAY_NAME = 'gateway.sandwire.internal'

/** URL of the credential gateway inside a container. */
export const CONTAINER_GATEWAY_URL = `http://${GATEWAY_NAME}`

/** Header in which workerd names the slot of a request; it replaces what the client sent. */
export const SLOT_HEADER = 'x-sandwire-slot'

/** Path prefixes of the gateway. The next segment is a model provider's id, or the host of a repository or header rule. */
export const GATEWAY_PATHS = { models: '/models/', git: '/git/', hosts: '/hosts/', wake: '/wake' } as const

/** Base URL of a model provider at the gateway. */
export function modelBaseUrl(gatewayUrl: string, provider: string): string {
  return `${gatewayUrl}${GATEWAY_PATHS.models}${provider}`
}

/**
 * Variables that send git's requests for the given hosts through the gateway. Remotes keep their real URL, and the token is in no
 * file and no URL.
 */
export function gitEnvironment(
  gatewayUrl: string,
  token: string,
  hosts: readonly string[],
): Readonly<Record<string, string>> {
  const entries: (readonly [string, string])[] = hosts.map((host) => [
    `url.${gatewayUrl}${GATEWAY_PATHS.git}${host}/.insteadOf`,
    `https://${host}/`,
  ])
  entries.push([`http.${gatewayUrl}/.extraHeader`, `Authorization: Bearer ${token}`])
  const numbered = entries.flatMap(([key, value], at): (readonly [string, string])[] => [
    [`GIT_CONFIG_KEY_${at}`, key],
    [`GIT_CONFIG_VALUE_${at}`, value],
  ])
  return {
    GIT_CONFIG_COUNT: String(entries.length),
    ...Object.fromEntries(numbered),
    GIT_TERMINAL_PROMPT: '0',
  }
}
