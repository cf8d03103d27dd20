import type { IncomingMessage, ServerResponse } from 'node:http'
import type Provider from 'oidc-provider'
import type { TestUser } from './users.ts'

/** Size limit of a posted form. */
const MAX_FORM_BYTES = 4_096

const PAGE = `<!doctype html>
<html lang="en">
<title>Test issuer</title>
<h1>Test issuer</h1>
<form method="post">
  <label>User name <input name="user" autocomplete="off" autofocus></label>
  <button name="answer" value="yes">Sign in</button>
  <button name="answer" value="no">Refuse</button>
</form>`

async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
  let text = ''
  for await (const chunk of request) {
    text += String(chunk)
    if (text.length > MAX_FORM_BYTES) throw new Error('The form is too long')
  }
  return new URLSearchParams(text)
}

/** Serves the sign-in form. Its submission signs the user in and grants the requested scopes that the user may have. */
export async function answerInteraction(
  provider: Provider,
  findUser: (account: string) => TestUser | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { params } = await provider.interactionDetails(request, response)
  if (request.method !== 'POST') {
    response.setHeader('content-type', 'text/html; charset=utf-8')
    response.end(PAGE)
    return
  }
  const form = await readForm(request)
  const account = form.get('user') ?? ''
  const user = findUser(account)
  if (form.get('answer') !== 'yes' || user === undefined) {
    const refusal = { error: 'access_denied', error_description: 'Refused on the page' }
    await provider.interactionFinished(request, response, refusal, { mergeWithLastSubmission: false })
    return
  }
  const requested = typeof params['scope'] === 'string' ? params['scope'].split(' ') : []
  const resources = [params['resource'] ?? []].flat().map(String)
  const grant = new provider.Grant({ accountId: account, clientId: String(params['client_id']) })
  grant.addOIDCScope(requested.filter((scope) => !scope.startsWith('sandbox:')).join(' '))
  for (const resource of resources) {
    const granted = requested.filter((scope) => user.scopes.some((allowed) => allowed === scope))
    const rejected = requested.filter((scope) => scope.startsWith('sandbox:') && !granted.includes(scope))
    if (granted.length > 0) grant.addResourceScope(resource, granted.join(' '))
    if (rejected.length > 0) grant.rejectResourceScope(resource, rejected.join(' '))
  }
  const result = { login: { accountId: account }, consent: { grantId: await grant.save() } }
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false })
}
