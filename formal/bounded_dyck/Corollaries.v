(** Corollary 1: uniform attention and depth. Corollary 2: what weight decay leaves of the loss. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
Require Import List Arith.
From Formal.common Require Import Sums.
From Formal.bounded_dyck Require Import Pairs Words Bounds.
Import ListNotations.
Open Scope R_scope.

(** Uniform attention over START and a word: the mean of the values. *)
Definition uniform (start : nat -> R) (value : bracket -> nat -> R) (w : list bracket) (e : nat) : R :=
  / (1 + INR (length w)) * (start e + fold_right (fun b s => value b e + s) 0 w).

(** Values of the first layer: START (1, 0), open brackets (0, 1), closed ones (0, -1). *)
Definition mark (e : nat) : R := match e with O => 1 | _ => 0 end.
Definition signed (b : bracket) (e : nat) : R := match e with O => 0 | _ => match b with Open _ => 1 | Close _ => -1 end end.

Lemma signed_count k D w : forall s s', run k D s w = Some s' ->
  fold_right (fun b t => signed b 1 + t) 0 w = INR (length s') - INR (length s).
Proof.
  induction w as [|[i|i] w IH]; intros s s' H; cbn [run] in H.
  - injection H as ->. cbn [fold_right]. ring.
  - destruct (andb (i <? k) (length s <? D)); [|discriminate]. cbn [fold_right]. rewrite (IH _ _ H).
    cbn [length]. rewrite S_INR. simpl. ring.
  - destruct s as [|j s]; [discriminate|]. destruct (i =? j); [|discriminate]. cbn [fold_right]. rewrite (IH _ _ H).
    cbn [length]. rewrite S_INR. simpl. ring.
Qed.

Lemma signed_nothing w : fold_right (fun b t => signed b 0 + t) 0 w = 0.
Proof. induction w; cbn [fold_right]; [reflexivity|]. rewrite IHw. simpl. ring. Qed.

(** @statement Bounded Dyck: Corollary 1
    @clause the first layer knows the depth
    @kind clause
    @hypotheses any prefix of bounded Dyck, of any length; uniform attention over START and the prefix; values START (1, 0),
      open brackets (0, 1), closed ones (0, -1)
    @formula of the features s and h, LN of the mean of the values, s is not zero and h/s is the depth *)
Theorem uniform_attention_knows_the_depth :
  forall k D w stack, run k D [] w = Some stack ->
  let f := LN 2 (uniform mark signed w) in
  f 0%nat <> 0 /\ f 1%nat / f 0%nat = INR (length stack).
Proof.
  intros k D w stack H f. pose proof (pos_INR (length w)) as Pl.
  assert (P : 0 < / (1 + INR (length w))) by (apply Rinv_0_lt_compat; lra).
  assert (U0 : uniform mark signed w 0 = / (1 + INR (length w))).
  { unfold uniform. rewrite signed_nothing. simpl mark. ring. }
  assert (U1 : uniform mark signed w 1 = / (1 + INR (length w)) * INR (length stack)).
  { unfold uniform. rewrite (signed_count k D w [] stack H). simpl mark. simpl (INR (length [])). ring. }
  assert (Pn : 0 < norm 2 (uniform mark signed w)).
  { apply sqrt_lt_R0. unfold dot. cbn [Sum]. rewrite U0. pose proof (Rle_0_sqr (uniform mark signed w 1)) as Q. unfold Rsqr in Q. nra. }
  unfold f, LN. rewrite U0, U1. split.
  - apply Rgt_not_eq. now apply Rdiv_lt_0_compat.
  - field. split; lra.
Qed.

(** Uniform attention over a word alone. *)
Definition unmarked (value : bracket -> nat -> R) (w : list bracket) (e : nat) : R :=
  / INR (length w) * fold_right (fun b s => value b e + s) 0 w.

(** @statement Bounded Dyck: Corollary 1
    @clause a starting token is needed
    @kind clause
    @hypotheses uniform attention without START, values of any width
    @formula a word and the same word twice have the same features, LN(2N) = LN(N); so have one and two open brackets of the
      first type, prefixes of depths 1 and 2 for k >= 1 and D >= 2 *)
Theorem without_start_words_are_their_doubles :
  forall W value, (forall w e, LN W (unmarked value (w ++ w)) e = LN W (unmarked value w) e) /\
  forall k D, (1 <= k)%nat -> (2 <= D)%nat -> run k D [] [Open 0] = Some [0%nat] /\ run k D [] [Open 0; Open 0] = Some [0%nat; 0%nat] /\
  forall e, LN W (unmarked value [Open 0; Open 0]) e = LN W (unmarked value [Open 0]) e.
Proof.
  intros W value.
  assert (Twice : forall w e, LN W (unmarked value (w ++ w)) e = LN W (unmarked value w) e).
  { intros w e. assert (E : forall e, unmarked value (w ++ w) e = unmarked value w e).
    { clear e. intro e. unfold unmarked. rewrite app_length, plus_INR, fold_right_app.
      assert (A : forall v t, fold_right (fun b s => value b e + s) t v = fold_right (fun b s => value b e + s) 0 v + t).
      { induction v as [|b v IH]; intro t; cbn [fold_right]; [ring|]. rewrite (IH t). ring. }
      rewrite (A w (fold_right _ 0 w)). set (s := fold_right (fun b s => value b e + s) 0 w).
      destruct w as [|b w']; [unfold s; simpl; ring|].
      pose proof (lt_INR 0 (length (b :: w')) ltac:(simpl; lia)) as Pl. set (l := INR (length (b :: w'))) in *.
      simpl in Pl. field. lra. }
    unfold LN. rewrite E. f_equal. unfold norm, dot. f_equal. apply Sum_ext. intros. now rewrite !E. }
  split; [exact Twice|]. intros k D Pk PD. repeat split.
  - simpl. destruct k; [lia|]. destruct D; [lia|]. reflexivity.
  - simpl. destruct k; [lia|]. destruct D as [|[|D]]; [lia|lia|]. reflexivity.
  - intro e. exact (Twice [Open 0] e).
Qed.

(** Corollary 2: X prefixes of probabilities pi, the distribution p x of what follows prefix x among O brackets, outputs T. *)
Section Decay.
Variables (X O : nat) (weight : nat -> R) (p : nat -> nat -> R).
Hypotheses (Pw : forall x, (x < X)%nat -> 0 <= weight x) (Pp : forall x, (x < X)%nat -> Sum O (p x) = 1).

(** The expected squared distance of outputs from the bracket that follows. *)
Definition loss (T : nat -> nat -> R) : R :=
  Sum X (fun x => weight x * Sum O (fun o => p x o * distance O (T x) (kron o) ^ 2)).

Lemma loss_splits T : loss T = loss p + Sum X (fun x => weight x * distance O (T x) (p x) ^ 2).
Proof.
  unfold loss. rewrite <- Sum_plus. apply Sum_ext. intros x Lx.
  assert (Sq : forall v w, distance O v w ^ 2 = dot O v v - 2 * dot O v w + dot O w w).
  { intros v w. unfold distance. simpl. rewrite Rmult_1_r, norm_sqr. unfold dot. rewrite <- Sum_scal, <- Sum_minus, <- Sum_plus.
    apply Sum_ext. intros. ring. }
  assert (Kr : forall v o, (o < O)%nat -> dot O v (kron o) = v o).
  { intros v o Lo. unfold dot. rewrite (Sum_ext O _ (fun i => kron o i * v i)) by (intros; ring). exact (Sum_kron_r O o v Lo). }
  assert (Mean : forall v, Sum O (fun o => p x o * distance O v (kron o) ^ 2) = dot O v v - 2 * dot O v (p x) + 1).
  { intro v. rewrite (Sum_ext O _ (fun o => p x o * (dot O v v + 1) - 2 * (v o * p x o))).
    - rewrite Sum_minus, Sum_scal_r, Sum_scal, (Pp x Lx). fold (dot O v (p x)). ring.
    - intros o Lo. rewrite Sq, (Kr v o Lo), (Kr (kron o) o Lo), kron_same. ring. }
  rewrite !Mean, (Sq (T x) (p x)). ring.
Qed.

(** @statement Bounded Dyck: Corollary 2
    @clause the loss and its outputs
    @kind clause
    @hypotheses the expected squared loss over any finite number of prefixes; weights of any kind with outputs T and a norm
      R >= 0; exact weights of norm R_0, whose outputs are the distributions; lambda > 0 and weights whose excess of the loss
      over the least possible, plus lambda R, is at most lambda R_0
    @formula the excess of their loss over the least possible is at most lambda R_0, R <= R_0, and pi(x) |T(x) - p(x)|^2 <=
      lambda R_0 after each prefix x
    @note A minimiser of the loss plus lambda R is among these weights, and so are the exact ones. Where a smaller W_V has the
      same outputs, as before LN without a floor, no minimiser exists, and these weights do. That exact weights exist is
      Theorem 1. *)
Theorem weight_decay_leaves_little :
  forall (Weights : Type) (T : Weights -> nat -> nat -> R) (size : Weights -> R) good exact lambda,
  0 < lambda -> 0 <= size good -> (forall x o, (x < X)%nat -> (o < O)%nat -> T exact x o = p x o) ->
  loss (T good) - loss (T exact) + lambda * size good <= lambda * size exact ->
  (forall T', loss (T exact) <= loss T') /\
  loss (T good) - loss (T exact) <= lambda * size exact /\ size good <= size exact /\
  forall x, (x < X)%nat -> weight x * distance O (T good x) (p x) ^ 2 <= lambda * size exact.
Proof.
  intros Weights T size good exact lambda Pl Ps Ex Few.
  assert (Terms : forall T x, (x < X)%nat -> 0 <= weight x * distance O (T x) (p x) ^ 2).
  { intros T' x Lx. apply Rmult_le_pos; [now apply Pw|apply pow2_ge_0]. }
  assert (Least : forall T', loss p <= loss T').
  { intro T'. rewrite (loss_splits T'). pose proof (Sum_nonneg X (fun x => weight x * distance O (T' x) (p x) ^ 2) (Terms T')). lra. }
  assert (E : loss (T exact) = loss p).
  { unfold loss. apply Sum_ext. intros x Lx. f_equal. apply Sum_ext. intros o _. f_equal. f_equal. unfold distance, norm, dot.
    f_equal. apply Sum_ext. intros i Li. now rewrite (Ex x i Lx Li). }
  pose proof (Least (T good)) as L.
  assert (0 <= lambda * size good) by (apply Rmult_le_pos; lra).
  rewrite E in *. repeat split; [exact Least|lra| |].
  - apply (Rmult_le_reg_l lambda); lra.
  - intros x Lx. pose proof (Sum_ge_term X (fun x => weight x * distance O (T good x) (p x) ^ 2) x (Terms (T good)) Lx) as S.
    pose proof (loss_splits (T good)). cbv beta in S. lra.
Qed.
End Decay.
