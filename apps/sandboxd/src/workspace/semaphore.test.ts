import { describe, expect, test } from 'bun:test'
import { Semaphore } from './semaphore.ts'

const limits = { capacity: 100, maxWaiting: 2, waitMs: 60_000, refusal: 'full' }

describe('Semaphore', () => {
  test('admits waiting requests in order of arrival', async () => {
    const semaphore = new Semaphore(limits)
    const order: string[] = []
    const release = await semaphore.acquire(80)
    const large = semaphore.acquire(70).then((releaseLarge) => {
      order.push('large')
      return releaseLarge
    })
    const small = semaphore.acquire(10).then((releaseSmall) => {
      order.push('small')
      return releaseSmall
    })
    expect(semaphore.held).toBe(80)
    release()
    release()
    const releases = await Promise.all([large, small])
    expect({ order, held: semaphore.held }).toEqual({ order: ['large', 'small'], held: 80 })
    for (const each of releases) each()
    expect(semaphore.held).toBe(0)
  })

  test('admits a request for more than the capacity when nothing else is held', async () => {
    const semaphore = new Semaphore(limits)
    const release = await semaphore.acquire(1_000)
    expect(semaphore.held).toBe(100)
    release()
    expect(semaphore.held).toBe(0)
  })

  test('refuses a request when too many wait', async () => {
    const semaphore = new Semaphore(limits)
    const release = await semaphore.acquire(100)
    const waiting = [semaphore.acquire(1), semaphore.acquire(1)]
    expect(semaphore.acquire(1)).rejects.toMatchObject({ code: 'rate_limited', message: 'full' })
    release()
    await Promise.all(waiting)
  })

  test('refuses a request that has waited too long', async () => {
    const semaphore = new Semaphore({ ...limits, waitMs: 1 })
    await semaphore.acquire(100)
    expect(semaphore.acquire(1)).rejects.toMatchObject({ code: 'rate_limited' })
  })

  test('removes an aborted request, which may have blocked smaller ones', async () => {
    const semaphore = new Semaphore(limits)
    await semaphore.acquire(60)
    const client = new AbortController()
    const large = semaphore.acquire(100, client.signal)
    const small = semaphore.acquire(40)
    client.abort(new Error('gone'))
    expect(large).rejects.toThrow('gone')
    await small
    expect(semaphore.held).toBe(100)
  })
})
