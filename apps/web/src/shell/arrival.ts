import { shape } from '@sandwire/protocol'

/** Where the page that redeems links leaves what is to be opened, for this tab alone. */
const KEY = 'sandwire.open'

const arrival = shape.record({
  sandbox: shape.text(128),
  session: shape.nullable(shape.text(256)),
  role: shape.oneOf(['viewer', 'collaborator']),
})

/** What somebody came for: a session, or a sandbox. It names them and gives no right to them. */
export interface Arrival {
  readonly sandbox: string
  readonly session: string | null
  readonly role: 'viewer' | 'collaborator'
}

/** Reads what was left, once; what cannot be understood is nothing. */
export function takeArrival(shelf: Pick<Storage, 'getItem' | 'removeItem'>): Arrival | undefined {
  const text = shelf.getItem(KEY)
  if (text === null) return undefined
  shelf.removeItem(KEY)
  try {
    return arrival.decode(JSON.parse(text))
  } catch {
    // Not left by us.
    return undefined
  }
}
