import { describe, expect, test } from 'bun:test'
import { TextRoom } from './text-room.ts'

const limits = { maxBytes: 100, maxWaiting: 2, waitMs: 60_000 }

describe('TextRoom', () => {
  test('lets others wait until there is room, in the order of asking', async () => {
    const room = new TextRoom(limits)
    const order: string[] = []
    const giveBack = await room.take(80)
    const large = room.take(70).then((back) => {
      order.push('large')
      return back
    })
    const small = room.take(10).then((back) => {
      order.push('small')
      return back
    })
    expect(room.taken).toBe(80)
    giveBack()
    giveBack()
    const backs = await Promise.all([large, small])
    expect({ order, taken: room.taken }).toEqual({ order: ['large', 'small'], taken: 80 })
    for (const back of backs) back()
    expect(room.taken).toBe(0)
  })

  test('takes what is more than all of it when nothing else is there', async () => {
    const room = new TextRoom(limits)
    const giveBack = await room.take(1_000)
    expect(room.taken).toBe(100)
    giveBack()
    expect(room.taken).toBe(0)
  })

  test('refuses who would be one too many', async () => {
    const room = new TextRoom(limits)
    const giveBack = await room.take(100)
    const waiting = [room.take(1), room.take(1)]
    expect(room.take(1)).rejects.toMatchObject({ code: 'rate_limited' })
    giveBack()
    await Promise.all(waiting)
  })

  test('refuses who has waited too long', async () => {
    const room = new TextRoom({ ...limits, waitMs: 1 })
    await room.take(100)
    expect(room.take(1)).rejects.toMatchObject({ code: 'rate_limited' })
  })

  test('forgets who leaves, who may have been in the way', async () => {
    const room = new TextRoom(limits)
    await room.take(60)
    const leaving = new AbortController()
    const large = room.take(100, leaving.signal)
    const small = room.take(40)
    leaving.abort(new Error('gone'))
    expect(large).rejects.toThrow('gone')
    await small
    expect(room.taken).toBe(100)
  })
})
