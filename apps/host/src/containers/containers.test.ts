import { expect, test } from 'bun:test'
import { findContainerProblems } from './containers.ts'

const CONTAINERS = { socket: '/run/docker.sock', image: 'sandbox:1', egressImage: 'egress:1' }
const GOOD = {
  isAnswering: async () => true,
  hasImage: async () => true,
  gateway: async (): Promise<string | undefined> => '172.17.0.1',
  publishAddress: async (): Promise<string | undefined> => '127.0.0.1',
}

test('reports no problem for a complete engine', async () => {
  expect(await findContainerProblems(CONTAINERS, GOOD)).toEqual([])
})

test('reports only that the engine does not answer', async () => {
  const problems = await findContainerProblems(CONTAINERS, {
    ...GOOD,
    isAnswering: async () => false,
    hasImage: () => Promise.reject(new Error('not stopRequested')),
  })
  expect(problems).toHaveLength(1)
  expect(problems[0]).toContain('"/run/docker.sock"')
})

test('reports everything that is missing at once, with remedies', async () => {
  const bare = {
    ...GOOD,
    hasImage: async () => false,
    gateway: async () => undefined,
    publishAddress: async () => undefined,
  }
  const problems = await findContainerProblems(CONTAINERS, bare)
  expect(problems).toEqual([
    'Image "sandbox:1" not found: build it with npm run image',
    'Image "egress:1" not found: docker pull egress:1',
    expect.stringContaining('--bip'),
    expect.stringContaining('"ip": "127.0.0.1"'),
  ])
})
