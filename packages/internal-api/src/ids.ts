/** Alphabet of ids: Crockford's base 32 in lower case, without look-alikes. */
export const ID_ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/** A sandbox id: 128 random bits in 26 characters, then 30 bits of an HMAC in 6. */
const SANDBOX_ID = /^[0-9a-hjkmnp-tv-z]{32}$/
/** A session id: the sandbox it is in, and 128 random bits. */
const SESSION_ID = /^([0-9a-hjkmnp-tv-z]{32})\.[0-9a-hjkmnp-tv-z]{26}$/

/** A run id: its sandbox, and 120 random bits. Neither a session id, which has a dot, nor a sandbox name, which has no underscore. */
const RUN_ID = /^([0-9a-hjkmnp-tv-z]{32})_[0-9a-hjkmnp-tv-z]{24}$/

/** A conversation id: its sandbox, and 120 random bits. Two underscores, so that it is no run id. */
const CONVERSATION_ID = /^([0-9a-hjkmnp-tv-z]{32})__[0-9a-hjkmnp-tv-z]{24}$/

/** True for the format of a sandbox id; only control can verify that it was issued. */
export function isSandboxId(text: string): boolean {
  return SANDBOX_ID.test(text)
}

/** The sandbox id in a session id; undefined when the format is wrong. */
export function sandboxIdOf(sessionId: string): string | undefined {
  return SESSION_ID.exec(sessionId)?.[1]
}

/** The sandbox id in a run id; undefined when the format is wrong. */
export function sandboxIdOfRun(runId: string): string | undefined {
  return RUN_ID.exec(runId)?.[1]
}

/** The sandbox id in a conversation id; undefined when the format is wrong. */
export function sandboxIdOfConversation(conversationId: string): string | undefined {
  return CONVERSATION_ID.exec(conversationId)?.[1]
}

/** Encodes bytes in the alphabet of ids, five bits per character, padded with zero bits. */
export function encodeId(bytes: Uint8Array): string {
  let text = ''
  let bits = 0
  let held = 0
  for (const byte of bytes) {
    held = (held << 8) | byte
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += ID_ALPHABET[(held >> bits) & 31]
    }
    held &= (1 << bits) - 1
  }
  return bits === 0 ? text : text + ID_ALPHABET[(held << (5 - bits)) & 31]
}
