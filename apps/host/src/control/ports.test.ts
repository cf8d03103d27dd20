import { expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import { chooseAddresses } from './ports.ts'

test('port 0 becomes one free port for every address', async () => {
  const { port, listen } = await chooseAddresses(['127.0.0.1', '::1'], 0)
  expect(port).toBeGreaterThan(0)
  expect(listen[0]).toBe(`127.0.0.1:${port}`)
  for (const address of listen) expect(address).toEndWith(`:${port}`)
})

test('a port that is taken is refused by name', async () => {
  using server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => undefined } })
  expect((await rejectionOf(chooseAddresses(['127.0.0.1'], server.port)))?.message).toBe(
    `Cannot listen on 127.0.0.1:${server.port}: the port is taken\nhint: choose another with --port, or 0 for a free one`,
  )
})

test('an address the machine does not have is left out, unless it is the only one', async () => {
  const { listen } = await chooseAddresses(['203.0.113.7', '127.0.0.1'], 0)
  expect(listen).toHaveLength(1)
  expect((await rejectionOf(chooseAddresses(['203.0.113.7'], 0)))?.message).toContain(
    'no address 203.0.113.7',
  )
})
