/** The part of Node's zlib that control uses; workerd implements it. */
declare module 'node:zlib' {
  export function zstdDecompressSync(
    bytes: Uint8Array,
    options: { readonly maxOutputLength: number },
  ): Uint8Array
}
