// The output of the page: a picture of the world, and a line of text.

/** The pixels of a tile. */
const SCALE = 12;
const COLOURS = ["#2e7d32", "#b71c1c", "#ef6c00", "#1257c7"];

const canvas = document.querySelector("canvas");
const context = canvas.getContext("2d");

/** Draws discs: of each the tiles to the east and to the north of the middle, the radius in tiles, and the colour. */
export function draw(discs) {
  context.clearRect(0, 0, canvas.width, canvas.height);
  for (let at = 0; at < discs.length; at += 4) {
    const [east, north, radius, colour] = discs.subarray(at, at + 4);
    context.fillStyle = COLOURS[colour];
    context.beginPath();
    context.arc(canvas.width / 2 + east * SCALE, canvas.height / 2 - north * SCALE, radius * SCALE, 0, 2 * Math.PI);
    context.fill();
  }
}

/** Shows the state of the connection. */
export function report(text) {
  document.querySelector("#status").textContent = text;
}
