(** Lemma 1: the gradient of J = log alpha for one sequence, for any numbers of tokens and any length. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Sums Softmax.
Open Scope R_scope.

(** A sequence: T contextual tokens x_0 .. x_(T-1), the query token m, the next token n. M tokens exist. *)
Section Sequence.
Variables (M T m n : nat) (x : nat -> nat).

(** b: attention over the contextual tokens, from row m of Z. *)
Definition attention (Z : nat -> nat -> R) : nat -> R := softmax T (fun t => Z m (x t)).

(** X^T b: attention by token. *)
Definition by_token (b : nat -> R) (l : nat) : R := Sum T (fun t => kron (x t) l * b t).

(** X^T diag(b) X. *)
Definition weights (b : nat -> R) (p q : nat) : R := Sum T (fun t => kron (x t) p * b t * kron (x t) q).

(** LN(X^T b). *)
Definition feature (Z : nat -> nat -> R) (l : nat) : R :=
  by_token (attention Z) l / norm M (by_token (attention Z)).

(** Y^T LN(X^T b), alpha = softmax of these, and J. *)
Definition logits (Y Z : nat -> nat -> R) (j : nat) : R := Sum M (fun l => Y l j * feature Z l).
Definition alpha (Y Z : nat -> nat -> R) : nat -> R := softmax M (logits Y Z).
Definition objective (Y Z : nat -> nat -> R) : R := ln (alpha Y Z n).

(** P_perp(v) = I - v v^T/|v|^2. *)
Definition perp (v : nat -> R) (p q : nat) : R := kron p q - v p * v q / dot M v v.

(** (3): LN(X^T b)(x_{T+1} - alpha)^T. *)
Definition gradient_Y (Y Z : nat -> nat -> R) (l j : nat) : R := feature Z l * (kron j n - alpha Y Z j).

(** (3): x_T (x_{T+1} - alpha)^T Y^T (P_perp(X^T b)/|X^T b|) X^T diag(b) X. *)
Definition gradient_Z (Y Z : nat -> nat -> R) (a l : nat) : R :=
  let b := attention Z in
  let v := by_token b in
  kron a m * Sum M (fun j => (kron j n - alpha Y Z j) * Sum M (fun p => Y p j *
    Sum M (fun q => perp v p q / norm M v * weights b q l))).

Lemma attention_pos Z t : (0 < T)%nat -> 0 < attention Z t.
Proof. apply softmax_pos. Qed.

Lemma by_token_norm Z : (0 < T)%nat -> (forall t, (t < T)%nat -> (x t < M)%nat) -> 0 < norm M (by_token (attention Z)).
Proof.
  intros PT Hx. apply sqrt_lt_R0.
  assert (P : 0 < by_token (attention Z) (x 0%nat)).
  { unfold by_token. apply (Sum_pos T _ 0%nat); [|exact PT|].
    - intros t _. unfold kron. pose proof (attention_pos Z t PT). destruct (Nat.eqb (x t) (x 0%nat)); lra.
    - rewrite kron_same. pose proof (attention_pos Z 0 PT). lra. }
  apply (Sum_pos M _ (x 0%nat)); [|now apply Hx|nra].
  intros i _. apply Rle_0_sqr.
Qed.

(** Along any direction (D, d) in the space of both matrices, J moves at the rate that (3) says. *)
(** @statement Scan and Snap: Lemma 1
    @kind clause
    @hypotheses any M tokens, any sequence of T >= 1 contextual tokens, any query m < M and next token n < M;
      any Y and Z
    @formula along every direction (D, d), J(Y + s D, Z + s d) has at s = 0 the derivative <G_Y, D> + <G_Z, d>,
      with G_Y = LN(X^T b)(x_{T+1} - alpha)^T and G_Z = x_T (x_{T+1} - alpha)^T Y^T P_perp(X^T b)/|X^T b| X^T
      diag(b) X
    @note J = log alpha_{x_{T+1}}, alpha = softmax(Y^T LN(X^T b)), b = softmax of row m of Z at the contextual
      tokens: batch size one. *)
Theorem lemma1 :
  forall Y Z D d, (0 < T)%nat -> (forall t, (t < T)%nat -> (x t < M)%nat) -> (m < M)%nat -> (n < M)%nat ->
  is_derive (fun s => objective (fun l j => Y l j + s * D l j) (fun a l => Z a l + s * d a l)) 0
    (Sum M (fun l => Sum M (fun j => gradient_Y Y Z l j * D l j)) +
     Sum M (fun a => Sum M (fun l => gradient_Z Y Z a l * d a l))).
Proof.
  intros Y Z D d PT Hx Hm Hn.
  set (Ys := fun (s : R) l j => Y l j + s * D l j). set (Zs := fun (s : R) a l => Z a l + s * d a l).
  set (b := attention Z). set (v := by_token b). set (al := alpha Y Z).
  (* at s = 0 *)
  assert (Y0 : forall l j, Ys 0 l j = Y l j) by (intros; unfold Ys; ring).
  assert (A0 : forall t, (t < T)%nat -> attention (Zs 0) t = b t).
  { intros t L. apply softmax_ext; [exact L|]. intros. unfold Zs. ring. }
  assert (V0 : forall l, by_token (attention (Zs 0)) l = v l).
  { intro l. apply Sum_ext. intros t L. now rewrite A0. }
  assert (N0 : norm M (by_token (attention (Zs 0))) = norm M v).
  { unfold norm. f_equal. apply Sum_ext. intros. now rewrite !V0. }
  assert (F0 : forall l, feature (Zs 0) l = feature Z l).
  { intro l. unfold feature. now rewrite V0, N0. }
  assert (L0 : forall j, (j < M)%nat -> alpha (Ys 0) (Zs 0) j = al j).
  { intros j L. apply softmax_ext; [exact L|]. intros. apply Sum_ext. intros. now rewrite Y0, F0. }
  (* the chain *)
  set (mean := Sum T (fun t => b t * d m (x t))).
  set (db := fun t => b t * (d m (x t) - mean)).
  assert (Db : forall t, (t < T)%nat -> is_derive (fun s => attention (Zs s) t) 0 (db t)).
  { intros t L. unfold attention.
    pose proof (is_derive_softmax T (fun s t => Zs s m (x t)) (fun t => d m (x t)) 0 t L) as S.
    replace (db t) with (softmax T (fun t => Zs 0 m (x t)) t *
      (d m (x t) - Sum T (fun k => softmax T (fun t => Zs 0 m (x t)) k * d m (x k)))).
    - apply S. intros k _. unfold Zs. auto_derive; [easy|ring].
    - unfold db, mean. fold (attention (Zs 0)). rewrite A0 by exact L. f_equal. f_equal.
      apply Sum_ext. intros k Lk. now rewrite A0. }
  set (dv := fun l => Sum T (fun t => kron (x t) l * db t)).
  assert (Dv : forall l, (l < M)%nat -> is_derive (fun s => by_token (attention (Zs s)) l) 0 (dv l)).
  { intros l _. unfold by_token, dv.
    apply (is_derive_Sum T (fun t s => kron (x t) l * attention (Zs s) t)). intros t L.
    apply (is_derive_scal (fun s => attention (Zs s) t)). now apply Db. }
  pose proof (by_token_norm Z PT Hx) as Pv. fold b v in Pv.
  assert (Qv : 0 < dot M v v) by (rewrite <- norm_sqr; nra).
  set (df := fun l => (dv l - v l * dot M v dv / dot M v v) / norm M v).
  assert (Df : forall l, (l < M)%nat -> is_derive (fun s => feature (Zs s) l) 0 (df l)).
  { intros l L. unfold feature.
    pose proof (is_derive_normed M (fun s => by_token (attention (Zs s))) dv 0 l L) as S. cbv beta in S.
    rewrite N0 in S. specialize (S Pv Dv). rewrite V0 in S.
    replace (dot M (by_token (attention (Zs 0))) dv) with (dot M v dv) in S
      by (apply Sum_ext; intros; now rewrite V0).
    replace (dot M (by_token (attention (Zs 0))) (by_token (attention (Zs 0)))) with (dot M v v) in S
      by (apply Sum_ext; intros; now rewrite !V0).
    exact S. }
  set (dl := fun j => Sum M (fun l => D l j * feature Z l + Y l j * df l)).
  assert (Dl : forall j, (j < M)%nat -> is_derive (fun s => logits (Ys s) (Zs s) j) 0 (dl j)).
  { intros j _. unfold logits, dl.
    apply (is_derive_Sum M (fun l s => Ys s l j * feature (Zs s) l)). intros l L.
    rewrite <- (F0 l), <- (Y0 l j).
    apply (is_derive_mult (fun s => Ys s l j) (fun s => feature (Zs s) l) 0 (D l j) (df l)).
    - unfold Ys. auto_derive; [easy|ring].
    - now apply Df.
    - intros. apply Rmult_comm. }
  pose proof (is_derive_ln_softmax M (fun s => logits (Ys s) (Zs s)) dl 0 n Hn Dl) as G. cbv beta in G.
  match goal with |- is_derive _ _ ?e => replace e with (dl n - Sum M (fun k => softmax M (logits (Ys 0) (Zs 0)) k * dl k)); [exact G|] end.
  (* the algebra *)
  clear G Dl Df Dv Db.
  rewrite (Sum_ext M (fun k => softmax M (logits (Ys 0) (Zs 0)) k * dl k) (fun k => al k * dl k))
    by (intros; now rewrite <- L0).
  set (r := fun j => kron j n - al j).
  replace (dl n - Sum M (fun k => al k * dl k)) with (Sum M (fun j => r j * dl j)).
  2:{ unfold r. rewrite (Sum_ext M _ (fun j => kron j n * dl j - al j * dl j)) by (intros; ring).
      rewrite Sum_minus, (Sum_kron M n dl Hn). reflexivity. }
  unfold dl.
  rewrite (Sum_ext M _ (fun j => Sum M (fun l => r j * (D l j * feature Z l)) + r j * Sum M (fun l => Y l j * df l))).
  2:{ intros. rewrite Sum_plus, Rmult_plus_distr_l. f_equal. now rewrite Sum_scal. }
  rewrite Sum_plus. f_equal.
  - rewrite Sum_swap. apply Sum_ext. intros l _. apply Sum_ext. intros j _. unfold gradient_Y. fold al. unfold r. ring.
  - (* df = P_perp(v)/|v| X^T diag(b) X d_m, as P_perp(v) v = 0 *)
    set (w := fun q => Sum M (fun l => weights b q l * d m l)).
    assert (Ew : forall q, dv q = w q - mean * v q).
    { intro q. unfold dv, w, weights, v, by_token.
      rewrite (Sum_ext M _ (fun l => Sum T (fun t => kron (x t) q * b t * kron (x t) l * d m l)))
        by (intros; now rewrite Sum_scal_r).
      rewrite Sum_swap, <- Sum_scal, <- Sum_minus. apply Sum_ext. intros t L.
      rewrite (Sum_ext M _ (fun l => kron (x t) q * b t * (kron (x t) l * d m l))) by (intros; ring).
      rewrite Sum_scal, (Sum_kron_r M (x t) (d m) (Hx t L)). unfold db. ring. }
    assert (Edf : forall p, (p < M)%nat -> df p = Sum M (fun q => perp v p q / norm M v * w q)).
    { intros p Lp. unfold df, perp.
      rewrite (Sum_ext M _ (fun q => / norm M v * (kron p q * w q) - v p / (dot M v v * norm M v) * (v q * w q)))
        by (intros; field; lra).
      rewrite Sum_minus, !Sum_scal, (Sum_kron_r M p w Lp). fold (dot M v w).
      replace (dot M v dv) with (dot M v w - mean * dot M v v).
      - rewrite Ew. field. lra.
      - unfold dot. rewrite <- Sum_scal, <- Sum_minus. apply Sum_ext. intros. rewrite Ew. ring. }
    unfold gradient_Z. fold b v al. symmetry.
    rewrite (Sum_ext M _ (fun a => kron a m * Sum M (fun l => Sum M (fun j => r j * Sum M (fun p => Y p j *
      Sum M (fun q => perp v p q / norm M v * weights b q l))) * d a l))).
    2:{ intros a _. rewrite <- (Sum_scal M (kron a m)). apply Sum_ext. intros. unfold r. ring. }
    rewrite (Sum_kron M m (fun a => Sum M (fun l => Sum M (fun j => r j * Sum M (fun p => Y p j *
      Sum M (fun q => perp v p q / norm M v * weights b q l))) * d a l)) Hm).
    rewrite (Sum_ext M _ (fun l => Sum M (fun j => r j * Sum M (fun p => Y p j *
      Sum M (fun q => perp v p q / norm M v * (weights b q l * d m l)))))).
    2:{ intros l _. rewrite <- Sum_scal_r. apply Sum_ext. intros j _. rewrite Rmult_assoc, <- Sum_scal_r. f_equal.
        apply Sum_ext. intros p _. rewrite Rmult_assoc, <- Sum_scal_r. f_equal. apply Sum_ext. intros. ring. }
    rewrite Sum_swap. apply Sum_ext. intros j _. rewrite Sum_scal. f_equal.
    rewrite Sum_swap. apply Sum_ext. intros p Lp. rewrite Sum_scal. f_equal. rewrite Edf by exact Lp.
    rewrite Sum_swap. apply Sum_ext. intros q _. unfold w. now rewrite Sum_scal.
Qed.

(** @statement Scan and Snap: Lemma 1, zero sums
    @kind clause
    @hypotheses as for Lemma 1
    @formula every row of G_Y and every row of G_Z, the gradients of (3), sums to 0 *)
Theorem zero_sums :
  forall Y Z, (0 < T)%nat -> (forall t, (t < T)%nat -> (x t < M)%nat) -> (m < M)%nat -> (n < M)%nat ->
  (forall l, Sum M (fun j => gradient_Y Y Z l j) = 0) /\ (forall a, Sum M (fun l => gradient_Z Y Z a l) = 0).
Proof.
  intros Y Z PT Hx Hm Hn. split; [intro l|intro a].
  - unfold gradient_Y. rewrite Sum_scal, Sum_minus. unfold alpha. rewrite softmax_sum by lia.
    rewrite (Sum_ext M _ (fun j => kron j n * 1)), (Sum_kron M n (fun _ => 1) Hn) by (intros; ring). ring.
  - unfold gradient_Z. cbv zeta. set (b := attention Z). set (v := by_token b).
    assert (Pn : 0 < norm M v) by now apply by_token_norm.
    assert (Rows : forall q, Sum M (fun l => weights b q l) = v q).
    { intro q. unfold weights, v, by_token. rewrite Sum_swap. apply Sum_ext. intros t Lt. rewrite Sum_scal.
      rewrite (Sum_ext M _ (fun l => kron (x t) l * 1)), (Sum_kron_r M (x t) (fun _ => 1) (Hx t Lt)) by (intros; ring). ring. }
    assert (Dies : forall p, (p < M)%nat -> Sum M (fun q => perp v p q / norm M v * v q) = 0).
    { intros p Lp. assert (Pd : 0 < dot M v v) by (rewrite <- norm_sqr; nra).
      rewrite (Sum_ext M _ (fun q => / norm M v * (kron p q * v q) - v p / (dot M v v * norm M v) * (v q * v q)))
        by (intros; unfold perp; field; lra).
      rewrite Sum_minus, !Sum_scal, (Sum_kron_r M p v Lp). fold (dot M v v). field. lra. }
    rewrite Sum_scal, Sum_swap, Sum_zero; [ring|]. intros j _. rewrite Sum_scal, Sum_swap, Sum_zero; [ring|].
    intros p Lp. rewrite Sum_scal, Sum_swap.
    rewrite (Sum_ext M _ (fun q => perp v p q / norm M v * v q)) by (intros; rewrite Sum_scal, Rows; reflexivity).
    rewrite (Dies p Lp). ring.
Qed.
End Sequence.
