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

/** A page, or a part of one, behind the strictest policy it works with. */
export function respondPage(
  text: string,
  {
    type = HTML,
    status = 200,
    policy = CONTENT_SECURITY_POLICY,
  }: { readonly type?: string; readonly status?: number; readonly policy?: string } = {},
): Response {
  return new Response(text, {
    status,
    headers: {
      'content-type': type,
      'content-security-policy': policy,
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
    },
  })
}
