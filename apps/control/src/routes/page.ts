/** Nothing but our own files, and no frame around us. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

export const HTML = 'text/html; charset=utf-8'

/** Headers of a page, or of a part of one, behind the strictest policy it works with. */
export function pageHeaders(type = HTML, policy = CONTENT_SECURITY_POLICY): Readonly<Record<string, string>> {
  return {
    'content-type': type,
    'content-security-policy': policy,
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  }
}

export function respondPage(
  text: string,
  { type, status = 200 }: { readonly type?: string; readonly status?: number } = {},
): Response {
  return new Response(text, { status, headers: pageHeaders(type) })
}
