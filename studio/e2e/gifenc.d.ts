/** What the tests use of `gifenc`, which has no types of its own. */
declare module "gifenc" {
  type Colour = [red: number, green: number, blue: number];
  interface FrameOptions {
    palette?: Colour[];
    delay?: number;
    transparent?: boolean;
    transparentIndex?: number;
    dispose?: number;
  }
  interface Encoder {
    writeFrame(indexes: Uint8Array, width: number, height: number, options: FrameOptions): void;
    finish(): void;
    bytes(): Uint8Array;
  }
  export function GIFEncoder(): Encoder;
  export function quantize(pixels: Uint8Array, colours: number): Colour[];
  export function applyPalette(pixels: Uint8Array, palette: Colour[]): Uint8Array;
}
