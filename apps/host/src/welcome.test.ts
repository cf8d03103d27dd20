import { expect, test } from 'bun:test'
import { composeWelcome, type WelcomeFacts } from './welcome.ts'

const FACTS: WelcomeFacts = {
  url: 'http://localhost:8787',
  signInLink: 'http://localhost:8787/signin#code',
  isolation: 'bubblewrap',
  isRoot: false,
  weaknesses: [],
  adopted: 0,
  programs: '/opt/sandwire',
}

test('the welcome has the address, the link, and a line to paste', () => {
  const text = composeWelcome(FACTS)
  expect(text).toStartWith('Sandwire runs at http://localhost:8787\n')
  expect(text).toContain('http://localhost:8787/signin#code\n')
  expect(text).toContain('npx sbx-stdio http://localhost:8787/attach --sandbox dev --cmd bash\n')
  expect(text).toContain('Isolation  bubblewrap; details: npx sandwire doctor\n')
})

test('the welcome says in one line what is weak, and why there is no isolation', () => {
  expect(composeWelcome({ ...FACTS, weaknesses: ['a'] })).toContain(
    'Isolation  bubblewrap, with 1 weakness on this machine;',
  )
  expect(composeWelcome({ ...FACTS, weaknesses: ['a', 'b'] })).toContain('with 2 weaknesses')
  const none = { ...FACTS, isolation: 'none', notice: 'Not isolated: bubblewrap is not installed' } as const
  expect(composeWelcome(none)).toContain(
    'Isolation  none, loopback only: every command in a sandbox runs as you on this machine. Not isolated: bubblewrap is not installed;',
  )
  expect(composeWelcome({ ...none, isRoot: true })).toContain('runs as ROOT on this machine. Not isolated')
})

test('the welcome names a served folder, sandboxes that were found, and the token file where it must be given', () => {
  const text = composeWelcome({ ...FACTS, workspace: '/src', adopted: 2, tokenFile: '/data/local-token' })
  expect(text).toContain('over /src, 2 sandboxes found running\n')
  expect(text).toContain('--sandbox local --cmd bash --token-file /data/local-token\n')
})
