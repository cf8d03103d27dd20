import { isSecureUrl } from './identity/issuer-config.ts'

/** Most origins that an operator may list. */
export const MAX_EMBED_ORIGINS = 64

/**
 * Why a text is not an origin whose pages may embed a terminal; undefined when it is one, exactly as browsers send it. Other
 * notations are refused, because they would never match.
 */
export function findEmbedOriginProblem(text: string): string | undefined {
  if (text.includes('*')) return 'expected one origin, without wildcards'
  if (!URL.canParse(text)) return 'expected an origin, such as https://app.example'
  const { origin, hostname } = new URL(text)
  if (origin === 'null') return 'expected an origin, such as https://app.example'
  if (origin !== text) return `expected scheme, host and port alone, as browsers send them: ${origin}`
  if (hostname.endsWith('.')) return 'expected a host without a dot at its end'
  return isSecureUrl(text) ? undefined : 'expected https, unless it is loopback'
}
