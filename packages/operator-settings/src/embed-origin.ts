import { isSecureUrl } from './identity/issuer-config.ts'

/** Origins that an operator may list; more is a list of something else. */
export const MAX_EMBED_ORIGINS = 64

/**
 * Why a text is no origin whose pages may hold a terminal; undefined when it is one, to the letter as browsers send it. What is
 * almost one is refused too: it would never be sent, or it means more than one.
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
