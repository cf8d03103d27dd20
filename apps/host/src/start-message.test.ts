import { expect, test } from 'bun:test'
import { formatStartMessage, type StartMessageFacts } from './start-message.ts'

const FACTS: StartMessageFacts = {
  url: 'http://localhost:8787',
  signInLink: 'http://localhost:8787/signin#code',
  mode: 'local',
  listen: ['127.0.0.1:8787'],
  hasTls: false,
  identities: [],
  isolation: 'bubblewrap',
  isRoot: false,
  weaknesses: [],
  missingPrograms: [],
  adopted: 0,
  keepsSandboxes: false,
  savesFiles: true,
  programs: '/opt/sandwire',
}

test('has the URL, the sign-in link and a command for a terminal', () => {
  const text = formatStartMessage(FACTS)
  expect(text).toStartWith('Sandwire is running at http://localhost:8787\n')
  expect(text).toContain('http://localhost:8787/signin#code\n')
  expect(text).toContain('npx sbx-stdio http://localhost:8787/attach --sandbox dev --cmd bash\n')
  expect(text).toContain('Isolation  bubblewrap. Details: npx sandwire doctor\n')
})

test('reports weaknesses, and why there is no isolation, in one line', () => {
  expect(formatStartMessage({ ...FACTS, weaknesses: ['a'] })).toContain(
    'Isolation  bubblewrap, with 1 weakness on this machine.',
  )
  expect(formatStartMessage({ ...FACTS, weaknesses: ['a', 'b'] })).toContain('with 2 weaknesses')
  const none = { ...FACTS, isolation: 'none', notice: 'Not isolated: bubblewrap is not installed' } as const
  expect(formatStartMessage(none)).toContain(
    'Isolation  none, loopback only: commands in sandboxes run as you on this machine. Not isolated: bubblewrap is not installed.',
  )
  expect(formatStartMessage({ ...none, isRoot: true })).toContain('run as ROOT on this machine. Not isolated')
})

test('reports missing git in one line', () => {
  expect(formatStartMessage({ ...FACTS, missingPrograms: ['git'] })).toContain(
    '\n  Git        not installed on this machine, so git does not work in sandboxes\n',
  )
  expect(formatStartMessage(FACTS)).not.toContain('Git ')
})

test('names a served folder, adopted sandboxes and the token file', () => {
  const text = formatStartMessage({ ...FACTS, workspace: '/src', adopted: 2, tokenFile: '/data/local-token' })
  expect(text).toContain('serving /src, 2 sandboxes still running\n')
  expect(text).toContain('--sandbox local --cmd bash --token-file /data/local-token\n')
})

test('names issuers of an open server, and that the local token is not accepted', () => {
  const open: StartMessageFacts = {
    ...FACTS,
    url: 'https://sandwire.example',
    signInLink: 'https://sandwire.example/signin',
    mode: 'open',
    listen: ['0.0.0.0:8787'],
    identities: ['Keycloak (https://id.example/realms/a)', 'service tokens'],
  }
  const text = formatStartMessage(open)
  expect(text).toContain(
    'Sign in    https://sandwire.example/signin, with Keycloak (https://id.example/realms/a), service tokens\n',
  )
  expect(text).toContain('The local token is not accepted')
  expect(text).toContain('Listening  0.0.0.0:8787, for a proxy that terminates TLS\n')
  expect(text).toContain('npx sbx-stdio login https://sandwire.example\n')
  expect(formatStartMessage({ ...open, hasTls: true })).not.toContain('proxy')
})

test('names issuers of a local server', () => {
  expect(formatStartMessage({ ...FACTS, identities: ['Google'] })).toContain(
    '           Others sign in with Google\n',
  )
})

test('says what Ctrl-C stops', () => {
  expect(formatStartMessage(FACTS)).toEndWith(
    '\nCtrl-C stops the server and all sandboxes; files are kept.\n',
  )
  for (const isolation of ['bubblewrap', 'container'] as const)
    expect(formatStartMessage({ ...FACTS, isolation, keepsSandboxes: true })).toEndWith(
      '\nCtrl-C stops the server; sandboxes keep running.\n',
    )
})

test('says that files of containers are lost where they are not saved', () => {
  const facts = { ...FACTS, isolation: 'container', weaknesses: ['a', 'b'] } as const
  const text = formatStartMessage({ ...facts, savesFiles: false })
  expect(text).toContain('Isolation  container, with 2 weaknesses on this machine.')
  expect(text).toEndWith('Ctrl-C stops the server and all sandboxes; files in containers are lost.\n')
  expect(formatStartMessage(facts)).toEndWith('Ctrl-C stops the server and all sandboxes; files are kept.\n')
})
