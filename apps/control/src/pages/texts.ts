import type { SignInProblem } from '../auth/code-flow.ts'

// Every text of the pages that control serves. Plain text unless noted; placeholders are in braces.

export const COMMON_TEXTS = {
  loading: 'Loading…',
  unreachable: 'Server unreachable. Try again later.',
  signIn: 'Sign in',
} as const

export const SIGN_IN_TEXTS = {
  title: 'Sign in to Sandwire',
  localHeading: 'On this machine',
  /** Follows the command. */
  localHint: 'prints a sign-in link. Open it, or paste it here:',
  codeLabel: 'Link or code',
  signingIn: 'Signing in…',
  signedIn: 'Signed in.',
  linkInvalid: 'The link was used or has expired. Run npx sandwire signin to get a new one.',
  otherName:
    'You cannot sign in under this host name. Open the whole link that npx sandwire signin prints, or paste it here.',
  issuerButton: 'Continue with {name}',
  unavailable: 'This server has no browser sign-in.',
} as const

export const SIGN_IN_FAILED_TEXTS = {
  title: 'Sign-in failed',
  retry: 'Try again',
  problems: {
    stale: 'This sign-in was started in another browser, has expired, or was already completed.',
    redirect_uri:
      'The identity provider redirected to an address that names no issuer. The operator has to register the redirect URI of this issuer there.',
    denied: 'The sign-in was canceled or denied.',
    invalid_response: 'The identity provider sent an invalid response.',
    unavailable: 'The identity provider is not responding.',
    not_allowed: 'This account has no access to this server.',
  } satisfies Readonly<Record<SignInProblem, string>>,
} as const

export const JOIN_TEXTS = {
  title: 'Join',
  nameLabel: 'Your name, shown to others',
  join: 'Join',
  /** Before and after the command. */
  oneUse: ['The link works once and joins this browser. To join from a terminal instead, run ', ' there.'],
  open: 'Open',
  openInTerminal: 'In a terminal:',
  listInTerminal: 'To list the sessions in a terminal:',
  all: 'Everything shared with you',
  invited: '{owner} invited you to {target} as {role}.',
  sandbox: 'sandbox {name}',
  session: 'a session',
  conversation: 'a conversation with an agent',
  linkInvalid: 'The link was used, has expired or was revoked. Ask for a new one.',
  failed: 'The server responded with status {status}.',
  incomplete: 'This link is incomplete. Open the whole link.',
  guest: 'You were invited.',
  confirm: 'You were invited. If you join, its owner will see your name, {name}.',
  signInFirst: 'Sign in to accept the invitation.',
} as const

/** Shown in place of the workbench when the server was built without it. `missing` is markup. */
export const WORKBENCH_TEXTS = {
  title: 'No workbench',
  missing:
    'This server was built without the workbench. <a href="/signin">Sign in</a>, or use <code>sbx-stdio</code>.',
} as const
