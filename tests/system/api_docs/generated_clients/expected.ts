// What the clients call: an index, one whose limits are 1, and what is in the sample library.
declare const process: { argv: string[] };

export const [BASE, LIMITED] = process.argv.slice(2);
export const HASH = "ec3d3891de5128da2c66057ae435300d5ef5d71101c269160eaa553534f425bb";
export const UNKNOWN = "0".repeat(64);
export const VARIANT = "8a665c6e346d5a595e966275751b720f4c8d61d0fdcf43f9c7a77c5094ea1670";
export const CHARTSET = "21642f9846d39260";
export const EXPORT = "20261122T182049Z-1";

export function check(condition: boolean | undefined): asserts condition {
  if (condition !== true) throw new Error("unexpected response");
}

/** Whether bytes begin with these, each written as a character. */
export function startsWith(bytes: ArrayBuffer | undefined, prefix: string): boolean {
  if (!bytes || bytes.byteLength <= prefix.length) return false;
  return [...prefix].every((character, index) => new Uint8Array(bytes)[index] === character.charCodeAt(0));
}

/** Prints the id of an operation or a status that was as expected. */
export function called(name: string) {
  console.log(name);
}
